//! Identifiers of runs and trials.

use linerate_fleet::clock;
use linerate_model::run_id::RunId;

/// A new identifier: sortable UTC time and four random hex digits, such as `20261121-083015-4f2a`.
pub fn new_id() -> RunId {
    let random = clock::random::<2>().unwrap_or_else(|_| (std::process::id() as u16).to_be_bytes());
    id_at(clock::now_ms() / 1000, u16::from_be_bytes(random))
}

fn id_at(unix_s: u64, random: u16) -> RunId {
    let (days, second) = ((unix_s / 86_400) as i64, unix_s % 86_400);
    // Days since 1970 to a civil date: years are counted from March, in eras of 400 years (146 097 days).
    let day = days + 719_468;
    let era = day.div_euclid(146_097);
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}{month:02}{day_of_month:02}-{:02}{:02}{:02}-{random:04x}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn identifiers_are_utc_dates() {
        assert_eq!(super::id_at(0, 1), "19700101-000000-0001");
        assert_eq!(super::id_at(951_782_400, 0), "20000229-000000-0000");
        assert_eq!(super::id_at(1_795_249_815, 0x4f2a), "20261121-083015-4f2a");
        assert_ne!(super::new_id(), super::new_id());
    }
}
