#include "purine/graph/tensor.h"

#include "purine/graph/graph.h"

namespace purine {

const TensorInfo& Tensor::info() const {
  return graph_->infos_[graph_->tensors_[index_].info];
}

std::string Tensor::path() const {
  const Graph::TensorRecord& record = graph_->tensors_[index_];
  if (record.producer != Graph::none) {
    std::string path = graph_->path_of(graph_->operators_[record.producer].name);
    if (record.extra > 0) path += ":" + std::to_string(record.extra);
    return path;
  }
  if (graph_->is_variable(*this)) return graph_->path_of(graph_->variables_[record.extra].name);
  return graph_->path_of(graph_->inputs_[record.extra].name);
}

Location Tensor::location() const {
  return graph_->locations_[graph_->tensors_[index_].location];
}

bool Tensor::has_producer() const {
  return graph_->tensors_[index_].producer != Graph::none;
}

Operator Tensor::producer() const {
  PURINE_CHECK(has_producer());
  return {graph_, graph_->tensors_[index_].producer};
}

int Tensor::output_index() const {
  return has_producer() ? static_cast<int>(graph_->tensors_[index_].extra) : 0;
}

bool Variable::trainable() const {
  return graph().variables_[graph().tensors_[index()].extra].options.trainable;
}

bool Variable::decays() const {
  return graph().variables_[graph().tensors_[index()].extra].options.decays;
}

const Contract& Variable::initial() const {
  return *graph().variables_[graph().tensors_[index()].extra].initial;
}

bool Variable::has_next() const {
  return graph().variables_[graph().tensors_[index()].extra].next != Graph::none;
}

Tensor Variable::next() const {
  PURINE_CHECK(has_next());
  return {&graph(), graph().variables_[graph().tensors_[index()].extra].next};
}

const Contract& Operator::contract() const {
  return *graph_->operators_[index_].contract;
}

ContractPtr Operator::contract_pointer() const {
  return graph_->operators_[index_].contract;
}

std::string_view Operator::type() const {
  return contract().type();
}

std::string Operator::path() const {
  return graph_->path_of(graph_->operators_[index_].name);
}

Location Operator::location() const {
  return graph_->locations_[graph_->operators_[index_].location];
}

int Operator::input_count() const {
  return graph_->operators_[index_].input_count;
}

int Operator::output_count() const {
  return graph_->operators_[index_].output_count;
}

Tensor Operator::input(int index) const {
  PURINE_CHECK(index >= 0 && index < input_count());
  return {
      graph_,
      graph_->operator_inputs_[graph_->operators_[index_].first_input + static_cast<std::uint32_t>(index)]};
}

Tensor Operator::output(int index) const {
  PURINE_CHECK(index >= 0 && index < output_count());
  return {graph_, graph_->operators_[index_].first_output + static_cast<std::uint32_t>(index)};
}

std::vector<Tensor> Operator::inputs() const {
  std::vector<Tensor> tensors;
  for (int i = 0; i < input_count(); ++i) tensors.push_back(input(i));
  return tensors;
}

std::vector<Tensor> Operator::outputs() const {
  std::vector<Tensor> tensors;
  for (int i = 0; i < output_count(); ++i) tensors.push_back(output(i));
  return tensors;
}

Tensor GradientContext::input(int index) const {
  return op_.input(index);
}

Tensor GradientContext::output(int index) const {
  return op_.output(index);
}

}  // namespace purine
