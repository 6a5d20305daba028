//! The kinds of tests: their list. To add one: a file in `kind/` with a [`TestPlan`], and one line here; its
//! load, a file and a line of `LOADS` in `linerate-load`; its view, a file and a line of `VIEWS` in
//! `linerate-report`. A result that no other kind has, and what runs it: the table of `CONTRIBUTING.md`.

mod bulk;
mod connects;
mod disk;
mod http;
mod latency;
mod mtu;
mod path_mtu;
mod rtt;
mod tcp;
mod test_plan;
mod udp;

use std::any::Any;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use connects::ConnectsPlan;
pub use disk::DiskPlan;
pub use http::HttpPlan;
pub use latency::LatencyPlan;
pub use mtu::MtuPlan;
pub use path_mtu::PathMtuPlan;
pub use rtt::RttPlan;
pub use tcp::TcpPlan;
pub use test_plan::{Interference, OutOfLimits, TestPlan};
pub use udp::UdpPlan;

macro_rules! kinds {
    ($($kind:ident($plan:ident)),+ $(,)?) => {
        /// What is measured between two endpoints, or on one host.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum TestKind {
            $(#[doc = concat!("See [`", stringify!($plan), "`].")] $kind(Box<$plan>),)+
        }

        $(impl From<$plan> for TestKind {
            fn from(plan: $plan) -> Self {
                Self::$kind(Box::new(plan))
            }
        })+

        impl TestKind {
            /// Names of all kinds.
            pub fn names() -> Vec<&'static str> {
                vec![$($plan::name()),+]
            }

            /// The name of the kind.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $plan::name(),)+
                }
            }

            /// What every kind knows about itself.
            pub fn plan(&self) -> &dyn TestPlan {
                match self {
                    $(Self::$kind(plan) => &**plan,)+
                }
            }
        }
    };
}

kinds! {
    Tcp(TcpPlan),
    Udp(UdpPlan),
    Rtt(RttPlan),
    Mtu(MtuPlan),
    Latency(LatencyPlan),
    PathMtu(PathMtuPlan),
    Connects(ConnectsPlan),
    Http(HttpPlan),
    Disk(DiskPlan),
}

impl TestKind {
    /// The plan, when it is of this kind.
    pub fn get<P: TestPlan>(&self) -> Option<&P> {
        let plan: &dyn Any = self.plan();
        plan.downcast_ref()
    }

    /// Whether it is of this kind.
    pub fn is<P: TestPlan>(&self) -> bool {
        self.get::<P>().is_some()
    }
}
