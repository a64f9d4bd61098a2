#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace elastic {

/// Hosts of a network of their own: network namespaces, every two joined by a cable that can be
/// pulled. Needs root. Gone with the object.
class VethHosts {
 public:
  /// Whether this process may make network namespaces.
  static bool allowed();

  explicit VethHosts(int count);
  ~VethHosts();
  VethHosts(const VethHosts&) = delete;
  VethHosts& operator=(const VethHosts&) = delete;

  /// Runs `function` in a thread on `host`: the sockets and threads that it makes belong there.
  void run(int host, const std::function<void()>& function);
  /// The IPv4 address of `host` on its cable to `other`.
  static std::string address(int host, int other);
  /// From now on nothing that `from` sends reaches `to`, and neither is told.
  void cut(int from, int to);

 private:
  class Host;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace elastic
