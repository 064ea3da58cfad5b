#include "purine/graph/dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

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
  DotWriter(Graph& graph, const DotOptions& options) : graph_(graph), options_(options) {}

  std::string run() {
    for (std::uint32_t i = 0; i < graph_.tensor_count(); ++i) add_tensor(graph_.tensor(i));
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) add_operator(graph_.op(i));
    fold();
    place(root_, nullptr);
    for (std::uint32_t i = 0; i < graph_.operator_count(); ++i) {
      const Operator op = graph_.op(i);
      for (const Tensor tensor : op.inputs()) add_edge(id(tensor), id(op), tensor);
      for (const Tensor tensor : op.outputs()) add_edge(id(op), id(tensor), tensor);
    }
    for (const Variable variable : graph_.variables()) {
      if (variable.has_next()) add_update(id(variable.next()), id(variable));
    }
    // Ranks of all scopes together: each scope for itself, graphviz fails on some graphs of many scopes.
    std::string text =
        "digraph purine {\n  rankdir=TB;\n  newrank=true;\n"
        "  node [fontname=\"Helvetica\", style=filled];\n";
    write_locations(text);
    write_scope(root_, "", 1, text);
    for (const Edge& edge : edges_) write_edge(edge, text);
    return text + "}\n";
  }

 private:
  struct Node {
    std::string id;
    std::string attributes;
  };
  struct ScopeNode {
    std::string name;
    std::vector<Node> nodes;
    std::vector<std::string> names;  // of the inner scopes, as they appear
    std::map<std::string, ScopeNode, std::less<>> inner;
    std::size_t operators = 0;  // with those of inner scopes
    std::size_t vertices = 0;
    std::vector<std::string> colours;  // of its locations
    bool is_folded = false;
    std::string id;  // as one box
  };
  struct Edge {
    std::string from;
    std::string to;
    bool is_update = false;
    std::set<std::uint32_t> tensors;  // where one end is folded
  };

  static std::string id(Tensor tensor) { return "t" + std::to_string(tensor.index()); }
  static std::string id(Operator op) { return "o" + std::to_string(op.index()); }

  std::string colour(Location location) {
    const auto [entry, inserted] = colours_.try_emplace(location, palette[colours_.size() % palette.size()]);
    return entry->second;
  }

  /// Puts a vertex into the scope of its path.
  void add(std::string_view path, Node node, const std::string& fill, bool is_operator) {
    ScopeNode* scope = &root_;
    for (;;) {
      ++scope->vertices;
      if (is_operator) ++scope->operators;
      if (std::find(scope->colours.begin(), scope->colours.end(), fill) == scope->colours.end()) {
        scope->colours.push_back(fill);
      }
      const auto slash = path.find('/');
      if (slash == std::string_view::npos) break;
      const std::string name(path.substr(0, slash));
      const auto [entry, inserted] = scope->inner.try_emplace(name);
      if (inserted) {
        scope->names.push_back(name);
        entry->second.name = name;
        entry->second.id = "s" + std::to_string(scopes_++);
      }
      scope = &entry->second;
      path.remove_prefix(slash + 1);
    }
    node.attributes += ", fillcolor=" + quoted(fill);
    scope->nodes.push_back(std::move(node));
  }

  void add_tensor(Tensor tensor) {
    const std::string path = tensor.path();
    std::string label = tensor.info().text();
    if (!tensor.has_producer()) label = std::string(last_part(path)) + "\n" + label;
    const char* shape = graph_.is_variable(tensor) ? "ellipse, peripheries=2" : "ellipse";
    add(path, {id(tensor), std::string("shape=") + shape + ", label=" + quoted(label)},
        colour(tensor.location()), false);
  }

  void add_operator(Operator op) {
    const std::string path = op.path();
    std::string label(last_part(path));
    if (label != op.type()) label += "\n" + std::string(op.type());
    const std::string attributes = op.contract().attributes();
    if (!attributes.empty()) label += "\n" + attributes;
    add(path, {id(op), "shape=box, label=" + quoted(label)}, colour(op.location()), true);
  }

  /// Opens the scopes that hold the most, again and again, as long as what is then drawn is not too much.
  /// Scopes of one scope that hold as much as each other, like the blocks of a network, are opened together
  /// or not at all.
  void fold() {
    if (options_.most_vertices == 0) return;
    struct Group {
      std::vector<ScopeNode*> scopes;
      std::size_t more = 0;  // vertices to draw when they are opened
    };
    std::vector<Group> closed;
    std::size_t drawn = root_.nodes.size();
    const auto close_inner = [&](ScopeNode& scope) {
      std::map<std::size_t, Group> groups;
      for (const std::string& name : scope.names) {
        ScopeNode& inner = scope.inner.find(name)->second;
        inner.is_folded = true;
        Group& group = groups[inner.vertices];
        group.scopes.push_back(&inner);
        group.more += inner.nodes.size() + inner.names.size() - 1;
      }
      drawn += scope.names.size();
      for (auto& [vertices, group] : groups) closed.push_back(std::move(group));
    };
    close_inner(root_);
    for (;;) {
      auto largest = closed.end();
      for (auto group = closed.begin(); group != closed.end(); ++group) {
        if (drawn + group->more > options_.most_vertices) continue;
        if (largest == closed.end() || group->scopes.front()->vertices > largest->scopes.front()->vertices) {
          largest = group;
        }
      }
      if (largest == closed.end()) return;
      const Group opened = std::move(*largest);
      closed.erase(largest);
      for (ScopeNode* scope : opened.scopes) {
        scope->is_folded = false;
        drawn += scope->nodes.size() - 1;
        close_inner(*scope);
      }
    }
  }

  /// Tells for each vertex by what it is drawn: itself, or the scope that it is folded into.
  void place(const ScopeNode& scope, const ScopeNode* folded) {
    if (folded == nullptr && scope.is_folded) folded = &scope;
    for (const Node& node : scope.nodes) drawn_as_[node.id] = folded != nullptr ? folded->id : node.id;
    for (const auto& [name, inner] : scope.inner) place(inner, folded);
  }

  void add_edge(const std::string& from, const std::string& to, Tensor tensor) {
    const std::string& source = drawn_as_.at(from);
    const std::string& target = drawn_as_.at(to);
    if (source == target) return;
    Edge& edge = edge_between(source, target, false);
    if (source != from || target != to) edge.tensors.insert(tensor.index());
  }

  void add_update(const std::string& next, const std::string& variable) {
    const std::string& source = drawn_as_.at(next);
    const std::string& target = drawn_as_.at(variable);
    if (source != target) edge_between(source, target, true);
  }

  /// Edges that fall together are one, unless nothing is folded.
  Edge& edge_between(const std::string& from, const std::string& to, bool is_update) {
    const bool is_box = from.front() == 's' || to.front() == 's';
    const auto [found, added] = edge_numbers_.try_emplace(std::tuple(from, to, is_update), edges_.size());
    if (added || !is_box) {
      edges_.push_back({from, to, is_update, {}});
      return edges_.back();
    }
    return edges_[found->second];
  }

  void write_edge(const Edge& edge, std::string& text) const {
    std::string attributes = edge.is_update ? "style=dashed, constraint=false" : "";
    // A box that makes or reads one tensor says which; the ellipse at the other end would say it as well.
    const bool ends_in_tensor = edge.from.front() == 't' || edge.to.front() == 't';
    if (!edge.tensors.empty() && !ends_in_tensor) {
      attributes = "fontname=\"Helvetica\", fontsize=10, label=" +
                   quoted(edge.tensors.size() == 1 ? graph_.tensor(*edge.tensors.begin()).info().text()
                                                   : std::to_string(edge.tensors.size()) + " tensors");
    }
    text += "  " + edge.from + " -> " + edge.to + (attributes.empty() ? "" : " [" + attributes + "]") + ";\n";
  }

  static std::string box(const ScopeNode& scope) {
    std::string fill;
    for (const std::string& each : scope.colours) fill += (fill.empty() ? "" : ":") + each;
    const std::string label =
        scope.name + "\n" +
        (scope.operators > 0
             ? std::to_string(scope.operators) + (scope.operators == 1 ? " operator" : " operators")
             : std::to_string(scope.vertices) + (scope.vertices == 1 ? " tensor" : " tensors"));
    return scope.id + " [shape=box, style=\"" + (scope.colours.size() > 1 ? "striped" : "rounded,filled") +
           "\", penwidth=2, label=" + quoted(label) + ", fillcolor=" + quoted(fill) + "];\n";
  }

  /// What the colours mean, where there are several and each is of one location.
  void write_locations(std::string& text) const {
    if (colours_.size() < 2 || colours_.size() > palette.size()) return;
    text += "  subgraph \"cluster_locations\" {\n    label=\"locations\";\n";
    for (const auto& [location, fill] : colours_) {
      text += fmt::format("    {} [shape=box, label={}, fillcolor={}];\n", quoted("at " + location.text()),
                          quoted(location.text()), quoted(fill));
    }
    text += "  }\n";
  }

  void write_scope(const ScopeNode& scope, const std::string& path, std::size_t depth, std::string& text) {
    const std::string indent(2 * depth, ' ');
    for (const Node& node : scope.nodes) text += indent + node.id + " [" + node.attributes + "];\n";
    for (const std::string& name : scope.names) {
      const ScopeNode& inner = scope.inner.find(name)->second;
      if (inner.is_folded) {
        text += indent + box(inner);
        continue;
      }
      const std::string inner_path = path.empty() ? name : path + "/" + name;
      text += indent + "subgraph " + quoted("cluster_" + inner_path) + " {\n";
      text += indent + "  label=" + quoted(name) + ";\n";
      write_scope(inner, inner_path, depth + 1, text);
      text += indent + "}\n";
    }
  }

  Graph& graph_;
  const DotOptions options_;
  ScopeNode root_;
  std::size_t scopes_ = 0;
  std::map<Location, std::string> colours_;
  std::map<std::string, std::string> drawn_as_;
  std::vector<Edge> edges_;
  std::map<std::tuple<std::string, std::string, bool>, std::size_t> edge_numbers_;
};

}  // namespace

std::string dot(Graph& graph) {
  return dot(graph, {});
}

std::string dot(Graph& graph, const DotOptions& options) {
  return DotWriter(graph, options).run();
}

}  // namespace purine
