#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace elastic::bench {

/// A trainable tensor of a network.
struct Parameter {
  std::string name;
  std::size_t count = 0;  ///< elements
};

/// What the gradients of a network look like.
struct NetworkModel {
  std::string name;
  std::vector<Parameter> parameters;  ///< in the order of the forward pass

  std::size_t count() const;  ///< elements of all
};

/// "resnet50", "vgg16", "bert-large".
std::vector<std::string> model_names();
/// One of these, built up from the definition of its architecture.
NetworkModel make_model(const std::string& name);

}  // namespace elastic::bench
