// Whether this process was started together with others, and its connection to them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "purine/net/mpi_endpoint.h"
#include "purine/runtime/endpoint.h"

namespace purine::net {

/// What started this process with others, by the environment variables that it sets.
struct Launcher {
  std::string name;  ///< `mpirun`, `srun`, …
  int tasks = 0;     ///< how many it says that there are; 0 where it doesn't say
  int rank = 0;      ///< which of them this process is, from 0
};

/// Looks for variables of Open MPI's mpirun, of launchers that speak PMI (MPICH's mpiexec) or PMIx, and of
/// srun. A variable that isn't set is a null pointer, as of std::getenv.
std::optional<Launcher> find_launcher(const std::function<const char*(const char*)>& variable);

/// Connects a process that was started with others, as connect_mpi does; gives null for one that wasn't, and
/// leaves MPI alone then. Throws Error if MPI knows of another number of ranks than the launcher: each
/// process would train on its own.
std::unique_ptr<Endpoint> connect_if_launched(const ConnectionOptions& options = {});

}  // namespace purine::net
