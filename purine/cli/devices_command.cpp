#include <fmt/format.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "purine/cli/commands.h"
#include "purine/cli/json_object.h"
#include "purine/core/amount_text.h"
#include "purine/session/memory_limit.h"
#include "purine/session/runtime.h"

namespace purine::cli {
namespace {

// What Linux calls the processor; empty where it does not say.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

}  // namespace

int devices(const DevicesRequest& request) {
  const Runtime runtime;
  const std::string processor = processor_name();
  const int machine_cores = static_cast<int>(std::thread::hardware_concurrency());
  const std::size_t memory = available_memory();
  std::vector<JsonObject> objects;
  for (const Location& location : runtime.devices()) {
    if (request.json) {
      objects.push_back(JsonObject()
                            .add("device", location.text())
                            .add("kind", name_of(location.kind))
                            .add("name", processor)
                            .add("cores", Runtime::available_cores())
                            .add("workers", runtime.workers())
                            .add("available_bytes", memory)
                            .add("operators", runtime.cpu_kernels().types().size()));
      continue;
    }
    fmt::print("{}  {}\n", location.text(), processor.empty() ? "processor" : processor);
    fmt::print("  {} for this process, of {}; {} of memory available; {} types of operator\n",
               counted_text(Runtime::available_cores(), "core"),
               std::max(machine_cores, Runtime::available_cores()), bytes_text(memory),
               runtime.cpu_kernels().types().size());
  }
  if (request.json) {
    const JsonObject emulated = JsonObject().add("device", "0/emu:N").add("kind", name_of(DeviceKind::emu));
    print_line(JsonObject().add("devices", objects).add("on_request", std::span(&emulated, 1)));
    return success;
  }
  fmt::print("0/emu:N  emulated devices, made when asked for: --devices emu:0\n");
  return success;
}

}  // namespace purine::cli
