#include "purine/session/agreement.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "purine/core/version.h"
#include "purine/graph/vertex_texts.h"

namespace purine {
namespace {

/// The first rank that says something else than rank 0; 0 if all say the same.
std::size_t first_other(const std::vector<std::string>& words) {
  const auto other =
      std::find_if(words.begin(), words.end(), [&](const auto& say) { return say != words[0]; });
  return other == words.end() ? 0 : static_cast<std::size_t>(other - words.begin());
}

std::uint64_t join(std::uint64_t hash, std::uint64_t next) {
  hash = (hash ^ next) * 0x9e3779b97f4a7c15U;
  return hash ^ hash >> 29U;
}

}  // namespace

void compare_words(Endpoint& endpoint, const std::string& words, std::string_view hint) {
  const std::vector<std::string> all = endpoint.all_gather(words);
  const std::size_t other = first_other(all);
  if (other == 0) return;
  throw AgreedError(
      Error("session", "rank 0 " + all[0] + ", rank " + std::to_string(other) + " " + all[other], hint));
}

void at_all_ranks(Endpoint* endpoint, const std::function<void()>& function) {
  if (endpoint == nullptr) return function();
  std::exception_ptr own;
  std::string text;
  try {
    function();
  } catch (const RemoteError&) {
    throw;
  } catch (const std::exception& error) {
    own = std::current_exception();
    text = error.what();
  }
  const std::vector<std::string> all = endpoint->all_gather(text);
  const auto failed = std::find_if(all.begin(), all.end(), [](const auto& each) { return !each.empty(); });
  if (failed == all.end()) return;
  const auto rank = static_cast<int>(failed - all.begin());
  const bool all_alike = first_other(all) == 0;
  if (!all_alike && rank != endpoint->rank()) {
    throw RemoteError(rank, "at " + endpoint->host(rank) + ", " + *failed);
  }
  try {
    std::rethrow_exception(own);
  } catch (const Error& error) {
    if (all_alike) throw AgreedError(error, own);
    throw;
  }
}

void compare_graphs(Endpoint& endpoint, Graph& graph, std::uint64_t seed) {
  compare_words(endpoint, "runs purine " + std::string(version()), "every process must run the same build");
  compare_words(endpoint, "has seed " + std::to_string(seed), "every process must have the same");
  const VertexTexts vertices(graph);
  // hashes[i] is of the first i vertices.
  std::vector<std::uint64_t> hashes = {0};
  hashes.reserve(vertices.size() + 1);
  for (const std::uint64_t hash : vertices.hashes()) hashes.push_back(join(hashes.back(), hash));
  const auto differ = [&](std::size_t count) {
    const std::string mine = count < hashes.size() ? std::to_string(hashes[count]) : "ended";
    return first_other(endpoint.all_gather(mine)) != 0;
  };
  const std::vector<std::string> wholes =
      endpoint.all_gather(std::to_string(vertices.size()) + " " + std::to_string(hashes.back()));
  if (first_other(wholes) == 0) return;
  // The first `same` vertices are the same everywhere, the first `different` are not; all ranks halve alike.
  std::size_t same = 0;
  std::size_t different = 0;
  for (const std::string& whole : wholes) {
    different = std::max<std::size_t>(different, std::stoull(whole));
  }
  while (different - same > 1) {
    const std::size_t middle = same + (different - same) / 2;
    (differ(middle) ? different : same) = middle;
  }
  const bool has = same < vertices.size();
  const std::vector<std::string> texts = endpoint.all_gather(has ? vertices.text(same) : "nothing");
  const std::vector<std::string> paths = endpoint.all_gather(has ? vertices.path(same) : "");
  const std::size_t other = first_other(texts);
  throw AgreedError(
      Error("session",
            "rank 0 has '" + texts[0] + "', rank " + std::to_string(other) + " has '" + texts[other] + "'",
            "every process must build the same graph")
          .at(paths[0].empty() ? paths[other] : paths[0]));
}

}  // namespace purine
