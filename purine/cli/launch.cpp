#include "purine/cli/launch.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "purine/cli/commands.h"
#include "purine/core/error.h"
#include "purine/net/launcher.h"
#include "purine/session/agreement.h"
#include "purine/train/rank_reports.h"

namespace purine::cli {

Launch::Launch(double stall_limit) {
  net::ConnectionOptions options;
  options.stall_limit = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * stall_limit));
  options.notice_after = train::notice_after(stall_limit);
  options.waits = [this](int rank, double seconds) {
    if (!is_first()) return;
    const std::string text = train::wait_text(rank, endpoint_->host(rank), seconds);
    if (tell_) {
      tell_(text);
    } else {
      print_error(text);
    }
  };
  endpoint_ = net::connect_if_launched(options);
}

train::LoadedJob Launch::agree_on(const Attempt& own, bool is_in_run_folder) {
  if (!endpoint_) return own.get();
  const bool is_shared =
      endpoint_->all_gather(is_in_run_folder ? "run folder" : "job file").front() == "run folder";
  const bool reads = is_first() || !is_shared;
  at_all_ranks(endpoint(), [&] {
    if (reads) own.get();
  });
  if (!is_shared) return own.get();
  const std::string text = endpoint_->all_gather(reads ? train::job_text(own.get().job) : "").front();
  return reads ? own.get() : train::parse_job(text, "job.toml of rank 0");
}

std::unique_ptr<Runtime> Launch::make_runtime(const train::LoadedJob& loaded, const RunRequest& run) {
  Process process;
  if (endpoint_) process = {endpoint(), net::own_cores(*endpoint_)};
  if (ranks() > 1) {
    const auto rank = static_cast<std::size_t>(endpoint_->rank());
    links_ = net::measure_links(*endpoint_);
    process.network_bytes_per_second = links_[rank].bytes_per_second;
  }
  std::unique_ptr<Runtime> runtime;
  at_all_ranks(endpoint(), [&] { runtime = cli::make_runtime(loaded, run, process); });
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
    prints = own == (!is_gone ? remote.rank() : remote.rank() == 0 ? 1 : 0);
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
