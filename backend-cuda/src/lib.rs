//! hopwise on the CUDA driver.
