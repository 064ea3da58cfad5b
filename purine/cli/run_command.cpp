#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>

#include "purine/cli/commands.h"
#include "purine/core/error.h"
#include "purine/core/one_line.h"
#include "purine/net/launcher.h"
#include "purine/runtime/endpoint.h"

namespace purine::cli {
namespace {

std::optional<net::Launcher> launcher() {
  return net::find_launcher([](const char* variable) { return std::getenv(variable); });
}

// Where it is started several times over, a command that is nothing but one process would do the same each
// time. The first says so; the others end well, for a launcher ends all when one fails.
template <typename Asked>
int in_one_process(const char* name, int (*command)(const Asked&), const Asked& request) {
  const std::optional<net::Launcher> started_by = launcher();
  if (!started_by || started_by->tasks <= 1) return command(request);
  if (started_by->rank > 0) return success;
  throw Error(
      "command",
      fmt::format("works in one process, and {} has started {}", started_by->name, started_by->tasks),
      fmt::format("start it without {}; train, eval, check and bench work over several", started_by->name))
      .at(name);
}

int call(const TrainRequest& request) {
  return train(request);
}
int call(const EvaluateRequest& request) {
  return evaluate(request);
}
int call(const BenchRequest& request) {
  return bench(request);
}
int call(const CheckRequest& request) {
  return check(request);
}
int call(const PredictRequest& request) {
  return in_one_process("purine predict", predict, request);
}
int call(const GraphRequest& request) {
  return in_one_process("purine graph", graph, request);
}
int call(const DevicesRequest& request) {
  return in_one_process("purine devices", devices, request);
}
int call(const SimulateRequest& request) {
  return in_one_process("purine simulate", simulate, request);
}
int call(const PlanRequest& request) {
  return in_one_process("purine plan", plan, request);
}
int call(const DataCheckRequest& request) {
  return in_one_process("purine data check", data_check, request);
}
int call(const WhyRequest& request) {
  return in_one_process("purine why", why, request);
}
int call(const ReportRequest& request) {
  return in_one_process("purine report", report, request);
}
int call(const TextRequest& request) {
  const std::optional<net::Launcher> started_by = launcher();
  return started_by && started_by->rank > 0 ? success : text(request);
}

// A standard stream that is closed would become the next file that is opened: a progress bar would be written
// into a run's metrics. Opened for reading alone, it still fails when it is written.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDONLY);
  }
}

Error unwritable_output() {
  return Error("output", "standard output cannot be written");
}

bool is_about_usage(std::string_view component) {
  return component == "command" || component == "job" || component == "cluster" ||
         component == "cost table" || component == "run folder";
}

// Of what another rank says, as in `at node2, [job] job.toml:3: …`, the component is part of the message.
std::string_view component_of(const Error& error) {
  constexpr std::string_view mark = ", [";
  const std::string_view message = error.message();
  const std::size_t begin = message.find(mark);
  const bool is_said = dynamic_cast<const RemoteError*>(&error) != nullptr && message.starts_with("at ");
  if (!is_said || begin == std::string_view::npos) return error.component();
  const std::string_view said = message.substr(begin + mark.size());
  return said.substr(0, said.find(']'));
}

}  // namespace

Complaint complaint_about(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& own) {
    return {is_about_usage(component_of(own)) ? usage : failure, own.what()};
  } catch (const std::bad_alloc&) {
    return {failure, "[memory] there is not enough memory; hint: take a smaller batch, or a smaller model"};
  } catch (const std::logic_error& bug) {
    return {failure,
            fmt::format("[bug] {}; hint: this is a mistake in purine, not in your input", bug.what())};
  } catch (const std::system_error& system) {
    // What printing throws says of neither file nor reason that a user would know.
    if (std::ferror(stdout) != 0) return {failure, unwritable_output().what()};
    return {failure, fmt::format("[system] {}", system.what())};
  } catch (const std::exception& any) {
    return {failure, fmt::format("[system] {}", any.what())};
  }
}

void print_error(std::string_view text) {
  std::fflush(stdout);
  std::fputs((one_line(text) + "\n").c_str(), stderr);  // nobody is left to tell if this fails
}

int run_command(int argc, const char* const* argv) {
  occupy_standard_streams();
  try {
    const Request request = parse_command_line(argc, argv);
    const int status = std::visit([](const auto& any) { return call(any); }, request);
    // Output that could not be written (a full disk, a closed pipe) is a failure too.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw unwritable_output();
    }
    return status;
  } catch (...) {
    const Complaint complaint = complaint_about(std::current_exception());
    print_error(complaint.text);
    return complaint.status;
  }
}

int text(const TextRequest& request) {
  fmt::print("{}", request.text);
  return success;
}

}  // namespace purine::cli
