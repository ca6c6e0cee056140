//! The `orchestrator` binary; all of it is in the library.

fn main() -> std::process::ExitCode {
    orchestrator_cli::main()
}
