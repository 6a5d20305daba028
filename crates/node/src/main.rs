//! Program `linerate-node`: all of it is the library, which `linerate` also has, for when it is alone.

fn main() -> std::process::ExitCode {
    linerate_node::main(std::env::args_os().skip(1))
}
