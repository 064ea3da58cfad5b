#include "purine/net/launcher.h"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "purine/core/error.h"
#include "purine/net/transport/messenger.h"

namespace purine::net {
namespace {

/// 0 for what is no positive number.
int number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value > 0 ? value : 0;
}

Error other_count(const Launcher& launcher, int ranks) {
  const std::string hint = launcher.name == "srun"
                               ? "start it with `srun --mpi=pmix`, or another interface of `srun --mpi=list` "
                                 "that this MPI speaks, or with mpirun"
                               : "use the launcher of the MPI that Purine is built with";
  return {"network",
          launcher.name + " has started " + std::to_string(launcher.tasks) + " tasks, but MPI knows of " +
              std::to_string(ranks),
          hint + ": " + mpi_library()};
}

}  // namespace

std::optional<Launcher> find_launcher(const std::function<const char*(const char*)>& variable) {
  const auto said = [&](const char* name) {
    const char* const text = variable(name);
    return text != nullptr ? number(text) : 0;
  };
  // mpirun may itself be started by srun, whose variables then tell of mpirun's own processes.
  if (variable("OMPI_COMM_WORLD_SIZE") != nullptr) {
    return Launcher{"mpirun", said("OMPI_COMM_WORLD_SIZE"), said("OMPI_COMM_WORLD_RANK")};
  }
  const bool is_step = variable("SLURM_STEP_NUM_TASKS") != nullptr;
  if (variable("PMI_SIZE") != nullptr) {
    return Launcher{is_step ? "srun" : "mpiexec", said("PMI_SIZE"), said("PMI_RANK")};
  }
  if (is_step) return Launcher{"srun", said("SLURM_STEP_NUM_TASKS"), said("SLURM_PROCID")};
  if (variable("PMIX_RANK") != nullptr) return Launcher{"a launcher with PMIx", 0, said("PMIX_RANK")};
  return std::nullopt;
}

std::unique_ptr<Endpoint> connect_if_launched(const ConnectionOptions& options) {
  const std::optional<Launcher> launcher = find_launcher([](const char* name) { return std::getenv(name); });
  if (!launcher || launcher->tasks == 1) return nullptr;
  std::unique_ptr<Endpoint> endpoint = connect_mpi(options);
  if (launcher->tasks > 0 && launcher->tasks != endpoint->size())
    throw other_count(*launcher, endpoint->size());
  if (endpoint->size() == 1) return nullptr;
  return endpoint;
}

}  // namespace purine::net
