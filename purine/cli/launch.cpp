#include "purine/cli/launch.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "purine/cli/commands.h"
#include "purine/cli/job_target.h"
#include "purine/core/error.h"
#include "purine/net/launcher.h"
#include "purine/net/start_up.h"
#include "purine/session/agreement.h"

namespace purine::cli {

Launch::Launch(double stall_limit)
    : endpoint_(net::connect_if_launched(
          {.stall_limit = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * stall_limit))})) {}

std::unique_ptr<Runtime> Launch::make_runtime(const train::LoadedJob& loaded, const RunRequest& run) {
  const int cores = endpoint_ ? net::own_cores(*endpoint_) : 0;
  std::unique_ptr<Runtime> runtime;
  at_all_ranks(endpoint(), [&] { runtime = cli::make_runtime(loaded, run, endpoint(), cores); });
  return runtime;
}

int Launch::run(const std::function<int()>& body) {
  if (!endpoint_) return body();
  std::exception_ptr error;
  try {
    return body();
  } catch (...) {
    error = std::current_exception();
  }
  return fail(error);
}

int Launch::fail(const std::exception_ptr& error) {
  const int own = endpoint_->rank();
  const Complaint complaint = complaint_about(error);
  bool prints = true;
  bool names_rank = false;  // of itself
  try {
    std::rethrow_exception(error);
  } catch (const RemoteError& remote) {
    const bool is_gone = remote.state() == RemoteError::Rank::is_gone;
    prints = remote.rank() == own || (is_gone && own == (remote.rank() == 0 ? 1 : 0));
    names_rank = true;
  } catch (const AgreedError&) {
    prints = own == 0;
    names_rank = true;  // it is about all of them
  } catch (...) {
    names_rank = false;
  }
  const std::string place = fmt::format("at {}, {}", endpoint_->host(own), complaint.text);
  endpoint_->fail(place);
  if (prints) print_error(names_rank ? complaint.text : fmt::format("[rank {}] {}", own, place));
  return complaint.status;
}

}  // namespace purine::cli
