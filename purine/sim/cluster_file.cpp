// Reads cluster files.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "purine/core/error.h"
#include "purine/core/nearest.h"
#include "purine/io/file.h"
#include "purine/sim/cluster.h"

namespace purine::sim {
namespace {

constexpr double most_hosts = 65'536;
constexpr std::int64_t most_gpus = 1024;  // of a host
constexpr double kibi = 1024;

// A number of a section. What the file says, times the unit, is stored.
template <typename Section>
struct Key {
  std::string_view name;
  double unit;
  void (*store)(Section&, double);
  bool required;
  double least;     // of what the file says
  double greatest;  // of what the file says
};

constexpr double any = 1e15;
constexpr double giga = 1e9;
constexpr double gibi = kibi * kibi * kibi;
constexpr double micro = 1e-6;
constexpr double gigabit = 1e9 / 8;

std::size_t bytes(double value) {
  return static_cast<std::size_t>(std::llround(value));
}

const std::vector<Key<Cpu>>& cpu_keys() {
  static const std::vector<Key<Cpu>> keys = {
      {"cores", 1, [](Cpu& cpu, double v) { cpu.cores = static_cast<int>(v); }, true, 1, 4096},
      {"f32_gflops", giga, [](Cpu& cpu, double v) { cpu.core.f32_operations = v; }, true, 1e-3, any},
      {"f64_gflops", giga, [](Cpu& cpu, double v) { cpu.core.f64_operations = v; }, false, 1e-3, any},
      {"reached", 1, [](Cpu& cpu, double v) { cpu.core.reached = v; }, false, 1e-3, 1},
      {"memory_gb_per_s", giga, [](Cpu& cpu, double v) { cpu.core.memory_bytes_per_second = v; }, true, 1e-3,
       any},
      {"start_us", micro, [](Cpu& cpu, double v) { cpu.core.start_seconds = v; }, false, 0, 1e6},
      {"all_busy_speed", 1, [](Cpu& cpu, double v) { cpu.all_busy_speed = v; }, false, 1e-2, 1},
      {"turn_us", micro, [](Cpu& cpu, double v) { cpu.turn_seconds = v; }, false, 0, 1e6},
      {"slice_us", micro, [](Cpu& cpu, double v) { cpu.slice_seconds = v; }, false, 0, 1e6},
      {"memory_gib", gibi, [](Cpu& cpu, double v) { cpu.memory_bytes = bytes(v); }, true, 1e-3, 1e6},
  };
  return keys;
}

const std::vector<Key<Gpu>>& gpu_keys() {
  static const std::vector<Key<Gpu>> keys = {
      {"f32_gflops", giga, [](Gpu& gpu, double v) { gpu.processor.f32_operations = v; }, true, 1e-3, any},
      {"f64_gflops", giga, [](Gpu& gpu, double v) { gpu.processor.f64_operations = v; }, false, 1e-3, any},
      {"reached", 1, [](Gpu& gpu, double v) { gpu.processor.reached = v; }, false, 1e-3, 1},
      {"memory_gb_per_s", giga, [](Gpu& gpu, double v) { gpu.processor.memory_bytes_per_second = v; }, true,
       1e-3, any},
      {"launch_us", micro, [](Gpu& gpu, double v) { gpu.processor.start_seconds = v; }, false, 0, 1e6},
      {"memory_gib", gibi, [](Gpu& gpu, double v) { gpu.memory_bytes = bytes(v); }, true, 1e-3, 1e6},
      {"in_gb_per_s", giga, [](Gpu& gpu, double v) { gpu.in_bytes_per_second = v; }, true, 1e-3, any},
      {"out_gb_per_s", giga, [](Gpu& gpu, double v) { gpu.out_bytes_per_second = v; }, true, 1e-3, any},
      {"peer_gb_per_s", giga, [](Gpu& gpu, double v) { gpu.peer_bytes_per_second = v; }, false, 1e-3, any},
      {"copy_us", micro, [](Gpu& gpu, double v) { gpu.copy_seconds = v; }, false, 0, 1e6},
  };
  return keys;
}

const std::vector<Key<Card>>& card_keys() {
  static const std::vector<Key<Card>> keys = {
      {"gbit_per_s", gigabit, [](Card& card, double v) { card.bytes_per_second = v; }, true, 1e-6, any},
      {"latency_us", micro, [](Card& card, double v) { card.latency = v; }, false, 0, 1e7},
      {"message_us", micro, [](Card& card, double v) { card.message_seconds = v; }, false, 0, 1e7},
      {"burst_kib", 1024, [](Card& card, double v) { card.burst_bytes = v; }, false, 0, any},
      {"core_ns_per_byte", 1e-9, [](Card& card, double v) { card.core_seconds_per_byte = v; }, false, 0, 1e6},
      {"core_us_per_message", micro, [](Card& card, double v) { card.core_seconds_per_message = v; }, false,
       0, 1e7},
      {"buffer_kib", kibi, [](Card& card, double v) { card.buffer_bytes = v; }, false, 0, any},
  };
  return keys;
}

const std::vector<Key<Switch>>& switch_keys() {
  static const std::vector<Key<Switch>> keys = {
      {"gbit_per_s", gigabit, [](Switch& all, double v) { all.bytes_per_second = v; }, false, 1e-6, any},
      {"latency_us", micro, [](Switch& all, double v) { all.latency = v; }, false, 0, 1e7},
  };
  return keys;
}

const std::vector<std::string> section_names = {"cpu", "gpu", "card", "switch", "host"};
const std::vector<std::string> host_key_names = {"count", "gpus", "cpu", "card"};

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  Cluster read(std::string_view text) {
    toml::table root;
    try {
      root = toml::parse(text, std::string_view(file_));
    } catch (const toml::parse_error& error) {
      throw mistake(error.source().begin.line, fmt::format("not TOML: {}", error.description()));
    }
    // A table's entries are not in the file's order, and the first mistake is the one to be told.
    std::vector<std::pair<unsigned, std::pair<std::string, const toml::node*>>> sections;
    for (const auto& [key, node] : root) {
      sections.push_back({key.source().begin.line, {std::string(key.str()), &node}});
    }
    std::sort(sections.begin(), sections.end());
    for (const auto& [line, section] : sections) read_models(line, section.first, *section.second);
    for (const auto& [line, section] : sections) {
      if (section.first == "host") read_hosts(line, *section.second);
    }
    if (cluster_.hosts.empty()) {
      throw Error("cluster", "has no host", "add [[host]] with a cpu and a card").at(file_);
    }
    if (cluster_.name.empty()) cluster_.name = file_;
    return std::move(cluster_);
  }

 private:
  Error mistake(unsigned line, std::string_view message, std::string_view hint = {}) const {
    return Error("cluster", message, hint).at(fmt::format("{}:{}", file_, line));
  }

  static std::string hint_for(std::string_view word, const std::vector<std::string>& known,
                              std::string_view what) {
    const std::string meant = nearest(word, known);
    return meant.empty() ? fmt::format("{} {}", what, fmt::join(known, ", "))
                         : fmt::format("did you mean '{}'?", meant);
  }

  void read_models(unsigned line, const std::string& name, const toml::node& node) {
    if (name == "name") {
      if (!node.is_string()) throw mistake(line, "name must be text", "put it in quotes");
      cluster_.name = node.as_string()->get();
      return;
    }
    if (std::find(section_names.begin(), section_names.end(), name) == section_names.end()) {
      throw mistake(line, fmt::format("unknown section [{}]", name),
                    hint_for(name, section_names, "there are"));
    }
    if (name == "host") return;
    const toml::table* table = node.as_table();
    if (table == nullptr) throw mistake(line, fmt::format("{} must be a section, [{}]", name, name));
    if (name == "switch") {
      read_section(line, "[switch]", *table, cluster_.network_switch, switch_keys());
      return;
    }
    std::vector<std::pair<unsigned, std::pair<std::string, const toml::table*>>> models;
    for (const auto& [model, model_node] : *table) {
      if (model_node.as_table() == nullptr) {
        throw mistake(model.source().begin.line,
                      fmt::format("'{}' is in [{}], which has no name", model.str(), name),
                      fmt::format("write [{}.NAME]", name));
      }
      models.push_back({model.source().begin.line, {std::string(model.str()), model_node.as_table()}});
    }
    std::sort(models.begin(), models.end());
    for (const auto& [model_line, model] : models) {
      const std::string title = fmt::format("[{}.{}]", name, model.first);
      if (name == "cpu") add_model(model_line, title, model, cpus_, cpu_keys());
      if (name == "gpu") add_model(model_line, title, model, gpus_, gpu_keys());
      if (name == "card") add_model(model_line, title, model, cards_, card_keys());
    }
  }

  template <typename Model>
  void add_model(unsigned line, const std::string& title,
                 const std::pair<std::string, const toml::table*>& model,
                 std::map<std::string, Model>& models, const std::vector<Key<Model>>& keys) {
    Model made;
    made.name = model.first;
    read_section(line, title, *model.second, made, keys);
    models.emplace(model.first, std::move(made));
  }

  double number(unsigned line, std::string_view name, const toml::node& node, double least, double greatest,
                bool whole) const {
    const std::optional<double> value = node.value<double>();
    if (!value || node.is_string() || node.is_boolean()) {
      throw mistake(line, fmt::format("{} must be a number", name),
                    node.is_string() ? "leave the quotes out" : "");
    }
    if (!(*value >= least && *value <= greatest) || (whole && *value != std::floor(*value))) {
      throw mistake(line, fmt::format("{} must be {}from {} to {}, got {}", name,
                                      whole ? "a whole number " : "", least, greatest, *value));
    }
    return *value;
  }

  template <typename Section>
  void read_section(unsigned line, const std::string& title, const toml::table& table, Section& section,
                    const std::vector<Key<Section>>& keys) {
    std::vector<std::pair<unsigned, std::string>> entries;
    for (const auto& [key, node] : table)
      entries.emplace_back(key.source().begin.line, std::string(key.str()));
    std::sort(entries.begin(), entries.end());
    for (const auto& entry : entries) {
      const unsigned key_line = entry.first;
      const std::string& name = entry.second;
      const auto key =
          std::find_if(keys.begin(), keys.end(), [&](const auto& any_key) { return any_key.name == name; });
      if (key == keys.end()) {
        std::vector<std::string> names;
        for (const auto& known : keys) names.emplace_back(known.name);
        throw mistake(key_line, fmt::format("unknown key '{}' in {}", name, title),
                      hint_for(name, names, "its keys are"));
      }
      const double value =
          number(key_line, name, *table.get(name), key->least, key->greatest, name == "cores");
      key->store(section, value * key->unit);
    }
    for (const auto& key : keys) {
      if (key.required && !table.contains(key.name)) {
        throw mistake(line, fmt::format("{} has no {}", title, key.name));
      }
    }
  }

  void read_hosts(unsigned line, const toml::node& node) {
    const toml::array* hosts = node.as_array();
    if (hosts == nullptr) throw mistake(line, "[host] is a list of hosts", "write [[host]]");
    for (const toml::node& entry : *hosts) {
      const toml::table* table = entry.as_table();
      if (table == nullptr)
        throw mistake(entry.source().begin.line, "[host] is a list of hosts", "write [[host]]");
      read_host(entry.source().begin.line, *table);
    }
  }

  void read_host(unsigned line, const toml::table& table) {
    Host host;
    std::int64_t count = 1;
    std::set<std::string> seen;
    std::vector<std::pair<unsigned, std::string>> entries;
    for (const auto& [key, node] : table)
      entries.emplace_back(key.source().begin.line, std::string(key.str()));
    std::sort(entries.begin(), entries.end());
    for (const auto& entry : entries) {
      const unsigned key_line = entry.first;
      const std::string& name = entry.second;
      const toml::node& node = *table.get(name);
      seen.insert(name);
      if (name == "count") {
        count = static_cast<std::int64_t>(number(key_line, name, node, 1, most_hosts, true));
      } else if (name == "cpu") {
        host.cpu = find(key_line, "cpu", node, cpus_);
      } else if (name == "card") {
        host.card = find(key_line, "card", node, cards_);
      } else if (name == "gpus") {
        read_gpus(key_line, node, host);
      } else {
        throw mistake(key_line, fmt::format("unknown key '{}' in [[host]]", name),
                      hint_for(name, host_key_names, "its keys are"));
      }
    }
    for (const char* required : {"cpu", "card"}) {
      if (!seen.contains(required)) throw mistake(line, fmt::format("[[host]] has no {}", required));
    }
    cluster_.hosts.insert(cluster_.hosts.end(), static_cast<std::size_t>(count), host);
  }

  template <typename Model>
  const Model& find(unsigned line, std::string_view what, const toml::node& node,
                    const std::map<std::string, Model>& models) const {
    if (!node.is_string()) throw mistake(line, fmt::format("{} must be a name in quotes", what));
    return find_named(line, what, node.as_string()->get(), models);
  }

  template <typename Model>
  const Model& find_named(unsigned line, std::string_view what, const std::string& name,
                          const std::map<std::string, Model>& models) const {
    const auto found = models.find(name);
    if (found != models.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [known, model] : models) names.push_back(known);
    throw mistake(
        line, fmt::format("there is no [{}.{}]", what, name),
        names.empty() ? fmt::format("add [{}.{}]", what, name) : hint_for(name, names, "there are"));
  }

  // `["titan"]`, `["2 x titan", "k40"]`, or one alone as text.
  void read_gpus(unsigned line, const toml::node& node, Host& host) {
    std::vector<std::string> items;
    if (node.is_string()) items.push_back(node.as_string()->get());
    if (const toml::array* list = node.as_array()) {
      for (const toml::node& item : *list) {
        if (!item.is_string()) throw mistake(line, "gpus must be names in quotes");
        items.push_back(item.as_string()->get());
      }
    } else if (items.empty()) {
      throw mistake(line, "gpus must be a list of names", "write gpus = [\"2 x NAME\"]");
    }
    for (const std::string& item : items) {
      std::int64_t count = 1;
      std::string name = item;
      if (const std::size_t times = item.find(" x "); times != std::string::npos) {
        const std::string number = item.substr(0, times);
        const bool whole = !number.empty() && number.size() < 6 &&
                           number.find_first_not_of("0123456789") == std::string::npos;
        count = whole ? std::stoll(number) : 0;
        if (count < 1 || count > most_gpus) {
          throw mistake(line,
                        fmt::format("'{}' must begin with a whole number from 1 to {}", item, most_gpus));
        }
        name = item.substr(times + 3);
      }
      host.gpus.insert(host.gpus.end(), static_cast<std::size_t>(count),
                       find_named(line, "gpu", name, gpus_));
    }
  }

  const std::string file_;
  Cluster cluster_;
  std::map<std::string, Cpu> cpus_;
  std::map<std::string, Gpu> gpus_;
  std::map<std::string, Card> cards_;
};

}  // namespace

Cluster parse_cluster(std::string_view text, std::string_view name) {
  return Reader(name).read(text);
}

Cluster read_cluster(const std::filesystem::path& path) {
  std::string text;
  try {
    text = io::read_file(path);
  } catch (const Error& error) {
    throw Error("cluster", error.message(), error.hint()).at(path.string());
  }
  return parse_cluster(text, path.string());
}

}  // namespace purine::sim
