//! The machine as a drawing for a report.
//!
//! NUMA nodes are boxes in one or two rows, with boxes for switches and host bridges in them. In
//! the upper row the GPUs are at the bottom, in the lower one at the top, so links between the rows
//! cross nothing; links within a row are arcs on the other side. An NVSwitch is a bar that GPUs
//! hang on.

use crate::{Machine, NodeKind};
use canvas::Canvas;
use fabric::Fabric;
use place::Plan;

mod canvas;
mod fabric;
mod legend;
mod place;
mod style;

/// Pixels around everything.
const MARGIN: f64 = 24.0;

/// Pixels of a drawing without its margins, at least.
const LEAST_WIDTH: f64 = 320.0;

/// Pixels of the title's line.
const TITLE: f64 = 40.0;

impl Machine {
    /// A drawing in SVG, of one GPU or of many: what hangs on what, and the links of the fabric by
    /// kind (colour), number of bonded links (width) and quality of the bandwidth (solid for
    /// measured and reported, dashed for estimated, dotted for unknown), with a legend of what
    /// occurs.
    ///
    /// It follows the reader's light or dark surroundings, holds no script, and is the same for
    /// the same machine.
    pub fn svg(&self) -> String {
        let fabric = Fabric::of(self);
        let title = self.drawing_title();
        let title_width = 10.5 * title.chars().count() as f64;
        let plan = Plan::of(self, &fabric, title_width.max(LEAST_WIDTH));
        let legend = legend::entries(self, &fabric);
        let legend_height = legend::height(&legend, plan.width);
        let notes = fabric.notes(self);
        let notes_height = 18.0 * notes.len() as f64;
        let (width, height) = (
            plan.width + 2.0 * MARGIN,
            TITLE + plan.height + notes_height + legend_height + 2.0 * MARGIN,
        );
        let mut canvas = Canvas::new(width, height, &title);
        canvas.text("title", [MARGIN, MARGIN + 16.0], &title);
        canvas.move_to(MARGIN, MARGIN + TITLE);
        plan.draw_boxes(self, &mut canvas);
        fabric.draw(self, &plan, &mut canvas);
        plan.draw_devices(self, &mut canvas);
        let mut y = plan.height + 20.0;
        for note in &notes {
            canvas.text("note", [0.0, y], note);
            y += 18.0;
        }
        legend::draw(&legend, plan.width, y, &mut canvas);
        canvas.finish()
    }

    /// `8 GPUs (NVIDIA H100), 10 network interfaces`
    fn drawing_title(&self) -> String {
        let models = self.gpus().iter().map(|&gpu| self.nodes()[gpu].model.as_deref());
        let mut models: Vec<&str> = models.flatten().collect();
        models.dedup();
        let model = match models[..] {
            [only] => format!(" ({only})"),
            _ => String::new(),
        };
        let counted = |count: usize, one: &str, many: &str| {
            if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
        };
        let gpus = counted(self.gpus().len(), "GPU", "GPUs");
        let is_switch = |kind| self.nodes().iter().any(|node| node.kind == kind);
        let mut title = format!("{gpus}{model}");
        if !self.nics().is_empty() {
            let nics = counted(self.nics().len(), "network interface", "network interfaces");
            title.push_str(&format!(", {nics}"));
        }
        if is_switch(NodeKind::NvSwitch) {
            title.push_str(", NVSwitch");
        }
        title
    }
}
