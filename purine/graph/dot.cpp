#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "purine/graph/graph.h"

namespace purine {
namespace {

/// Fill colours of locations, in the order in which locations appear; light, so that black text reads well.
constexpr std::array<const char*, 8> palette = {"#cfe2f3", "#fce5cd", "#d9ead3", "#f4cccc",
                                                "#d9d2e9", "#fff2cc", "#d0e0e3", "#ead1dc"};

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

class DotWriter {
 public:
  explicit DotWriter(Graph& graph) : graph_(graph) {}

  std::string run() {
    for (std::uint32_t i = 0; i < graph_.tensor_count(); ++i) add_tensor(graph_.tensor(i));
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) add_operator(graph_.op(i));
    for (const Variable variable : graph_.variables()) {
      if (!variable.has_next()) continue;
      edges_ += "  " + id(variable.next()) + " -> " + id(variable) + " [style=dashed, constraint=false];\n";
    }
    std::string text = "digraph purine {\n  rankdir=TB;\n  node [fontname=\"Helvetica\", style=filled];\n";
    write_scope(root_, "", 1, text);
    return text + edges_ + "}\n";
  }

 private:
  struct ScopeNode {
    std::vector<std::string> nodes;
    std::vector<std::string> names;  // of the inner scopes, as they appear
    std::map<std::string, ScopeNode, std::less<>> inner;
  };

  static std::string id(Tensor tensor) { return "t" + std::to_string(tensor.index()); }
  static std::string id(Operator op) { return "o" + std::to_string(op.index()); }

  /// The scope that a vertex of this path lies in.
  ScopeNode& scope_of(std::string_view path) {
    ScopeNode* scope = &root_;
    for (auto slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
      const std::string name(path.substr(0, slash));
      const auto [entry, inserted] = scope->inner.try_emplace(name);
      if (inserted) scope->names.push_back(name);
      scope = &entry->second;
      path.remove_prefix(slash + 1);
    }
    return *scope;
  }

  std::string colour(Location location) {
    const auto [entry, inserted] = colours_.try_emplace(location, palette[colours_.size() % palette.size()]);
    return entry->second;
  }

  void add_tensor(Tensor tensor) {
    const std::string path = tensor.path();
    std::string label = tensor.info().text();
    if (!tensor.has_producer()) label = std::string(last_part(path)) + "\n" + label;
    const char* shape = graph_.is_variable(tensor) ? "ellipse, peripheries=2" : "ellipse";
    scope_of(path).nodes.push_back(id(tensor) + " [shape=" + shape + ", label=" + quoted(label) +
                                   ", fillcolor=" + quoted(colour(tensor.location())) + "];\n");
  }

  void add_operator(Operator op) {
    const std::string path = op.path();
    std::string label(last_part(path));
    if (label != op.type()) label += "\n" + std::string(op.type());
    const std::string attributes = op.contract().attributes();
    if (!attributes.empty()) label += "\n" + attributes;
    scope_of(path).nodes.push_back(id(op) + " [shape=box, label=" + quoted(label) +
                                   ", fillcolor=" + quoted(colour(op.location())) + "];\n");
    for (const Tensor tensor : op.inputs()) edges_ += "  " + id(tensor) + " -> " + id(op) + ";\n";
    for (const Tensor tensor : op.outputs()) edges_ += "  " + id(op) + " -> " + id(tensor) + ";\n";
  }

  void write_scope(const ScopeNode& scope, const std::string& path, std::size_t depth, std::string& text) {
    const std::string indent(2 * depth, ' ');
    for (const std::string& node : scope.nodes) text += indent + node;
    for (const std::string& name : scope.names) {
      const std::string inner_path = path.empty() ? name : path + "/" + name;
      text += indent + "subgraph " + quoted("cluster_" + inner_path) + " {\n";
      text += indent + "  label=" + quoted(name) + ";\n";
      write_scope(scope.inner.find(name)->second, inner_path, depth + 1, text);
      text += indent + "}\n";
    }
  }

  Graph& graph_;
  ScopeNode root_;
  std::map<Location, std::string> colours_;
  std::string edges_;
};

}  // namespace

std::string dot(Graph& graph) {
  return DotWriter(graph).run();
}

}  // namespace purine
