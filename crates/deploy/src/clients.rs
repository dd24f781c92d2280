//! How programs come by the service level of a path. What a library ignores cannot be deployed by a
//! subnet manager.

use clearlane_ib::quoted;

/// A library or kernel client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Client {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is.
    pub summary: &'static str,
    /// Whether it asks the subnet manager for the SL of each path. Else a process has one.
    pub asks: bool,
    /// What has to be set so that it does, or by which a process is given its SL.
    pub setting: &'static str,
}

/// All that are known. Sources: the programs' own documents, as far as versions are named here.
pub const CLIENTS: &[Client] = &[
    Client {
        name: "rdma-cm",
        summary: "rdma_cm: NVMe-oF, iSER, NFS over RDMA, Lustre, SMB Direct",
        asks: true,
        setting: "nothing: the kernel asks for each connection",
    },
    Client {
        name: "ipoib",
        summary: "IPoIB in the kernel",
        asks: true,
        setting: "nothing: the kernel asks for each neighbour",
    },
    Client {
        name: "srp",
        summary: "SRP initiators",
        asks: true,
        setting: "nothing: the kernel asks for each target",
    },
    Client {
        name: "mvapich2",
        summary: "MVAPICH2, OFA-IB-CH3",
        asks: true,
        setting: "MV2_PATH_SL_QUERY=1 (MV2_3DTORUS_SUPPORT=1 on tori)",
    },
    Client {
        name: "openmpi-openib",
        summary: "Open MPI up to 4.1 with the openib BTL, which 5.0 has no more",
        asks: true,
        setting: "--mca btl_openib_ib_path_record_service_level 1",
    },
    Client {
        name: "ucx",
        summary: "UCX: Open MPI, MPICH, OpenSHMEM",
        asks: false,
        setting: "UCX_IB_SL=<SL>, one for all that a process sends",
    },
    Client {
        name: "nccl",
        summary: "NCCL",
        asks: false,
        setting: "NCCL_IB_SL=<SL>, one for all that a process sends",
    },
    Client {
        name: "nvshmem",
        summary: "NVSHMEM with IBRC or IBGDA",
        asks: false,
        setting: "NVSHMEM_IB_SL=<SL>, one for all that a process sends",
    },
];

/// The client of this name; an unknown name is answered with all that are known.
pub fn client(name: &str) -> Result<&'static Client, String> {
    CLIENTS.iter().find(|client| client.name == name).ok_or_else(|| {
        let known: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        let nearest = clearlane_ib::nearest(name, known.iter().copied())
            .map(|name| format!("; did you mean {name:?}?"))
            .unwrap_or_default();
        let name = quoted(name);
        format!("no client is named {name}{nearest}; known are {}", known.join(", "))
    })
}
