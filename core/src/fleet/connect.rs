//! Binding ports to channels, and making the host's ends.

use std::sync::{Arc, Weak};

use super::Fleet;
use super::channel::{Channel, Party};
use super::endpoint::Endpoint;
use super::error::ConnectError;
use super::kernel::KernelCell;
use super::mailbox::Mailbox;
use super::router::{ChannelOptions, Outlet};
use super::sender::HostSender;
use crate::id::{ChannelId, KernelId};
use crate::program::{Port, Program};

impl Fleet {
    /// Connects an out-port of one kernel to an in-port of another, or of itself. An out-port that
    /// was bound is bound anew: a new channel; what is under way on the old one still arrives.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: an unknown kernel or port, or messages too large for the in-port.
    pub fn connect(
        &self,
        from: &KernelId,
        out_port: &str,
        to: &KernelId,
        in_port: &str,
    ) -> Result<ChannelId, ConnectError> {
        self.connect_with(ChannelOptions::new(), from, out_port, to, in_port)
    }

    /// [`connect`](Self::connect), and says how the channel's messages are sent.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn connect_with(
        &self,
        options: ChannelOptions,
        from: &KernelId,
        out_port: &str,
        to: &KernelId,
        in_port: &str,
    ) -> Result<ChannelId, ConnectError> {
        let (sender, receiver) = (self.cell(from)?, self.cell(to)?);
        let out_index = out_port_of(&sender, out_port)?;
        let in_index = in_port_of(&receiver, in_port)?;
        let sends = &sender.program.out_ports()[out_index as usize];
        let takes = &receiver.program.in_ports()[in_index as usize];
        if sends.max_message_bytes > takes.max_message_bytes {
            return Err(ConnectError::TooLarge {
                from: format!("{from}.{out_port}"),
                to: format!("{to}.{in_port}"),
                sends_bytes: sends.max_message_bytes,
                takes_bytes: takes.max_message_bytes,
            });
        }
        let target = Target::kernel(&receiver, in_port, in_index);
        Ok(self.bind(&sender, out_index, out_port, target, options))
    }

    /// Connects an out-port of a kernel to an endpoint of the host.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: an unknown kernel or port.
    pub fn connect_endpoint(
        &self,
        from: &KernelId,
        out_port: &str,
        endpoint: &Endpoint,
    ) -> Result<ChannelId, ConnectError> {
        let sender = self.cell(from)?;
        let out_index = out_port_of(&sender, out_port)?;
        let target = Target::endpoint(endpoint);
        Ok(self.bind(&sender, out_index, out_port, target, ChannelOptions::new()))
    }

    /// Makes an endpoint that holds up to `capacity` messages (at least 1).
    #[must_use]
    pub fn endpoint(&self, name: impl Into<String>, capacity: usize) -> Endpoint {
        Endpoint::new(Arc::clone(&self.runtime), name.into(), capacity)
    }

    /// Makes a sender from the host into an in-port of a kernel.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: an unknown kernel or port.
    pub fn sender(
        &self,
        name: impl Into<String>,
        to: &KernelId,
        in_port: &str,
    ) -> Result<HostSender, ConnectError> {
        let receiver = self.cell(to)?;
        let in_index = in_port_of(&receiver, in_port)?;
        let max_message_bytes = receiver.program.in_ports()[in_index as usize].max_message_bytes;
        let target = Target::kernel(&receiver, in_port, in_index);
        let from = Party::Host { name: name.into() };
        let outlet = self.new_outlet(from, target, ChannelOptions::new());
        let runtime = Arc::clone(&self.runtime);
        Ok(HostSender::new(runtime, outlet, in_port.to_owned(), max_message_bytes))
    }

    /// Makes a sender from the host to an endpoint of the host: between threads that have no kernel.
    #[must_use]
    pub fn sender_to_endpoint(&self, name: impl Into<String>, to: &Endpoint) -> HostSender {
        let from = Party::Host { name: name.into() };
        let outlet = self.new_outlet(from, Target::endpoint(to), ChannelOptions::new());
        HostSender::new(Arc::clone(&self.runtime), outlet, to.name().to_owned(), u32::MAX)
    }

    fn cell(&self, kernel: &KernelId) -> Result<Arc<KernelCell>, ConnectError> {
        self.runtime.kernel(kernel).map_err(|_| ConnectError::UnknownKernel { kernel: *kernel })
    }

    fn bind(
        &self,
        sender: &KernelCell,
        index: u32,
        port: &str,
        target: Target,
        options: ChannelOptions,
    ) -> ChannelId {
        let from = Party::Kernel { kernel: sender.id, port: port.to_owned() };
        let outlet = self.new_outlet(from, target, options);
        let id = outlet.channel.id;
        sender.outputs.write()[index as usize] = Some(outlet);
        id
    }

    fn new_outlet(&self, from: Party, target: Target, options: ChannelOptions) -> Arc<Outlet> {
        let Target { party, mailbox, kernel, in_port } = target;
        let channel = Channel::new(self.runtime.new_channel_id(), from, party, in_port);
        let outlet = Outlet::new(channel, mailbox, kernel, options);
        self.runtime.channels.write().push(Arc::clone(&outlet.channel));
        outlet
    }
}

/// Where a channel's messages go.
struct Target {
    party: Party,
    mailbox: Arc<Mailbox>,
    /// The kernel to run when a message comes; `None` at an endpoint.
    kernel: Option<Weak<KernelCell>>,
    in_port: u32,
}

impl Target {
    fn kernel(receiver: &Arc<KernelCell>, port: &str, in_port: u32) -> Self {
        Self {
            party: Party::Kernel { kernel: receiver.id, port: port.to_owned() },
            mailbox: Arc::clone(&receiver.mailbox),
            kernel: Some(Arc::downgrade(receiver)),
            in_port,
        }
    }

    fn endpoint(endpoint: &Endpoint) -> Self {
        let (party, mailbox) = (endpoint.party(), Arc::clone(endpoint.mailbox()));
        Self { party, mailbox, kernel: None, in_port: 0 }
    }
}

fn out_port_of(cell: &KernelCell, port: &str) -> Result<u32, ConnectError> {
    let program = &cell.program;
    program.out_port(port).ok_or_else(|| unknown(cell, program, "out", port, program.out_ports()))
}

fn in_port_of(cell: &KernelCell, port: &str) -> Result<u32, ConnectError> {
    let program = &cell.program;
    program.in_port(port).ok_or_else(|| unknown(cell, program, "in", port, program.in_ports()))
}

fn unknown(
    cell: &KernelCell,
    program: &Program,
    direction: &'static str,
    port: &str,
    ports: &[Port],
) -> ConnectError {
    let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
    ConnectError::UnknownPort {
        kernel: cell.id,
        program: program.name().to_owned(),
        direction,
        port: port.to_owned(),
        ports: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
    }
}
