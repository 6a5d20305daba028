//! One number of the reasoning: what is known of it, how it is varied, and how those of a stage are declared.

/// What is known of one number.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The stage that uses it: the field of [`super::Rules`].
    pub stage: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Its value as text.
    pub value: String,
    /// Its unit.
    pub unit: &'static str,
    /// What it decides.
    pub meaning: &'static str,
    /// Where it comes from; empty where it was chosen by its effect.
    pub source: &'static str,
}

/// A number of any type.
pub(super) trait Number {
    fn text(&self) -> String;
    fn scale(&mut self, by: f64);
}

macro_rules! number {
    ($($kind:ty),*) => {$(
        impl Number for $kind {
            fn text(&self) -> String {
                self.to_string()
            }
            #[allow(clippy::cast_lossless)]
            fn scale(&mut self, by: f64) {
                *self = (*self as f64 * by).round() as Self;
            }
        }
    )*};
}

number!(u16, u32, u64, i64, usize);

impl Number for f64 {
    fn text(&self) -> String {
        if *self != 0.0 && (self.abs() >= 1e6 || self.abs() < 1e-3) {
            format!("{self:e}")
        } else {
            format!("{}", (self * 1e4).round() / 1e4)
        }
    }
    fn scale(&mut self, by: f64) {
        *self *= by;
    }
}

impl<const N: usize> Number for [f64; N] {
    fn text(&self) -> String {
        self.each_ref().map(Number::text).join(", ")
    }
    fn scale(&mut self, by: f64) {
        for value in self {
            value.scale(by);
        }
    }
}

/// Takes the name, unit, meaning and source of a number, and the number.
pub(super) type See<'a> = &'a mut dyn FnMut([&'static str; 4], &mut dyn Number);

/// The numbers of one stage, one entry for each: `name: type = value, unit, meaning[, source];`.
macro_rules! stage {
    ($(#[$about:meta])* $stage:ident {
        $($name:ident: $kind:ty = $value:expr, $unit:literal, $meaning:literal $(, $source:literal)?;)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $stage {
            $(#[doc = $meaning] pub $name: $kind,)*
        }

        impl $stage {
            pub(super) const DEFAULT: Self = Self { $($name: $value,)* };

            pub(super) fn each(&mut self, see: $crate::rules::number::See<'_>) {
                $(see([stringify!($name), $unit, $meaning, concat!($($source)?)], &mut self.$name);)*
            }
        }
    };
}
pub(super) use stage;
