//! Hosts that counters or a run on the command line show to be hot.

use crate::failure::Failure;
use crate::files;
use clap::Args;
use clearlane_diagnose::stand_out;
use clearlane_fabric::counters::{Busy, Counters};
use clearlane_fabric::{Fabric, NodeKind};
use clearlane_ib::visible;
use clearlane_lab::{BusiestHosts, HostLoad, TABLE_BYTES_MAX};
use std::path::{Path, PathBuf};

/// Where hosts are counted.
#[derive(Args, Clone, Debug, Default)]
pub struct HotCounted {
    /// Take the hosts for hot that stand out in these counters: what `ibqueryerrors --counters`
    /// prints. A second reading has the first subtracted
    #[arg(long, value_name = "FILE", requires = "hot_seconds")]
    hot_counters: Vec<PathBuf>,
    /// For how many seconds they counted: since they were cleared, or between the two readings
    #[arg(long, value_name = "S", requires = "hot_counters", value_parser = seconds)]
    hot_seconds: Option<f64>,
    /// Take the hosts for hot that stand out in the first variant of a run of this fabric
    #[arg(long, value_name = "DIR", conflicts_with = "hot_counters")]
    hot_run: Option<PathBuf>,
}

impl HotCounted {
    /// The files it reads.
    pub fn files_read(&self) -> impl Iterator<Item = &Path> {
        self.hot_counters.iter().map(PathBuf::as_path)
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.hot_counters.is_empty() && self.hot_run.is_none()
    }

    /// Names of the hot hosts and a sentence on them; nothing if nothing is counted.
    pub fn hosts(&self, fabric: &Fabric) -> Result<Option<(Vec<String>, String)>, Failure> {
        if let Some(folder) = &self.hot_run {
            let busiest = BusiestHosts::in_folder(folder).map_err(Failure::lab)?;
            let is_here = |host: &&HostLoad| {
                fabric.ids(NodeKind::ChannelAdapter).any(|id| fabric.node(id).name == host.host)
            };
            if let Some(stranger) = busiest.hosts.iter().find(|host| !is_here(host)) {
                let (folder, host) = (folder.display(), visible(&stranger.host));
                let line = format!("{folder}: host {host} is not in this fabric; give a run of it");
                return Err(Failure::Input(line));
            }
            return hot(&busiest, folder);
        }
        let (counted, source) = match self.hot_counters.as_slice() {
            [] => return Ok(None),
            [one] => (counters(one)?, one),
            [before, after] => {
                let since = counters(after)?.since(&counters(before)?);
                let wrong = |error| Failure::Input(format!("{}: {error}", after.display()));
                (since.map_err(wrong)?, after)
            }
            more => {
                let line = format!("{} readings of counters; give one or two", more.len());
                return Err(Failure::Input(line));
            }
        };
        let seconds = self.hot_seconds.unwrap_or(1.0);
        let wrong = |error| Failure::Input(format!("{}: {error}", source.display()));
        let busy = counted.to_hosts(fabric, seconds).map_err(wrong)?;
        let load = |busy: &Busy| HostLoad {
            host: fabric.node(busy.end.node).name.clone(),
            load: busy.share,
        };
        hot(&BusiestHosts::among(busy.iter().map(load).collect()), source)
    }
}

fn counters(path: &Path) -> Result<Counters, Failure> {
    let text = files::read(path, TABLE_BYTES_MAX)?;
    Counters::read(&text, &path.display().to_string()).map_err(Failure::input)
}

fn hot(busiest: &BusiestHosts, source: &Path) -> Result<Option<(Vec<String>, String)>, Failure> {
    let hot = stand_out(busiest);
    hot.map(Some).map_err(|error| Failure::Input(format!("{}: {error}", source.display())))
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err("is no time; give seconds, more than 0".into()),
    }
}
