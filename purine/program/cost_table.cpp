#include "purine/program/cost_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "purine/core/error.h"
#include "purine/core/json_helpers.h"
#include "purine/core/json_problem.h"
#include "purine/program/program.h"

namespace purine::program {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view format = "purine operator costs";
constexpr int table_version = 1;

Json to_json(const OperatorCost& cost) {
  return {{"path", cost.path},
          {"type", cost.type},
          {"attributes", cost.attributes},
          {"shapes", cost.shapes},
          {"algorithm", cost.algorithm},
          {"parts", cost.parts},
          {"seconds", cost.seconds},
          {"operations", cost.operations},
          {"bytes", cost.bytes}};
}

OperatorCost cost_from(const Json& json) {
  OperatorCost cost;
  cost.path = json.at("path");
  cost.type = json.at("type");
  cost.attributes = json.at("attributes");
  cost.shapes = json.at("shapes");
  cost.algorithm = json.at("algorithm");
  cost.parts = json.at("parts");
  cost.seconds = json.at("seconds");
  cost.operations = json.at("operations");
  cost.bytes = json.at("bytes");
  if (!(cost.seconds >= 0)) throw Error("cost table", cost.path + " takes less than no time");
  return cost;
}

}  // namespace

OperatorCost describe_operator(const Program& program, std::uint32_t op) {
  const Cost cost = program.is_view(op) ? Cost{} : program.cost(op);
  return {program.path(op),
          std::string(program.type(op)),
          program.attributes(op),
          program.shapes(op),
          std::string(program.algorithm(op)),
          program.kernel_parts(op),
          0,
          cost.operations,
          cost.bytes};
}

std::string CostTable::kind_of(const OperatorCost& cost) {
  return cost.type + '\n' + cost.attributes + '\n' + cost.shapes;
}

void CostTable::add(OperatorCost cost) {
  by_kind_[kind_of(cost)].push_back(operators_.size());
  operators_.push_back(std::move(cost));
}

std::optional<double> CostTable::seconds(const OperatorCost& of) const {
  const auto found = by_kind_.find(kind_of(of));
  if (found == by_kind_.end()) return std::nullopt;
  std::vector<double> all;
  for (const std::size_t index : found->second) {
    if (operators_[index].path == of.path) return operators_[index].seconds;
    all.push_back(operators_[index].seconds);
  }
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

std::string CostTable::text() const {
  const Json machine = {{"processor", machine_.processor},
                        {"workers", machine_.workers},
                        {"operations_per_second", machine_.operations_per_second},
                        {"bytes_per_second", machine_.bytes_per_second}};
  const auto dumped = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text = "{\"format\": " + dumped(Json(format)) +
                     ", \"version\": " + std::to_string(table_version) +
                     ",\n \"machine\": " + dumped(machine) + ",\n \"operators\": [";
  for (std::size_t i = 0; i < operators_.size(); ++i) {
    text += (i == 0 ? "\n  " : ",\n  ") + dumped(to_json(operators_[i]));
  }
  return text + "]}\n";
}

CostTable CostTable::parse(std::string_view text) {
  try {
    const Json json = parse_json(text);
    if (json.at("format") != format) throw Error("cost table", "it isn't one: its format is another");
    if (json.at("version") != table_version) {
      throw Error("cost table", "it has version " + json.at("version").dump() + ", and 1 is read here");
    }
    const Json& machine = json.at("machine");
    CostTable table({machine.at("processor"), machine.at("workers"), machine.at("operations_per_second"),
                     machine.at("bytes_per_second")});
    for (const Json& entry : json.at("operators")) table.add(cost_from(entry));
    return table;
  } catch (const nlohmann::json::exception& error) {
    throw Error("cost table", json_problem(text, error), "purine bench MODEL --save FILE writes one");
  }
}

}  // namespace purine::program
