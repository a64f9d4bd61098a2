#include "collectives/backend/nccl/communicator/communicator.hpp"

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "collectives/backend/nccl/communicator/communicator_body.hpp"

namespace elastic::collectives::nccl {

std::unique_ptr<Communicator> Communicator::prepare(std::shared_ptr<const NcclLibrary> library,
                                                    CommunicatorPlan plan) {
  auto body = std::make_shared<Body>(std::move(library), std::move(plan));
  try {
    std::thread([body] { body->prepare(); }).detach();
  } catch (const std::system_error& error) {
    body->kill(Status(Code::kUnavailable, std::string("no thread for NCCL: ") + error.what()));
  }
  return std::unique_ptr<Communicator>(new Communicator(std::move(body)));
}

Communicator::~Communicator() {
  abort();
}

Status Communicator::ready(TimePoint until) {
  return body_->wait_ready(until);
}

Status Communicator::perform(const char* name,
                             const std::function<int(const Api&, ncclComm*)>& call, TimePoint until,
                             const std::function<Status()>& meanwhile) {
  return body_->perform(name, call, until, meanwhile);
}

Status Communicator::check() {
  return body_->check();
}

void Communicator::abort() noexcept {
  body_->kill();
}

bool Communicator::retire() {
  return body_->retire();
}

Status Communicator::ended(TimePoint until) {
  return body_->wait_ended(until);
}

Phase Communicator::phase() const {
  return body_->phase();
}

bool Communicator::has_parent() const {
  return body_->has_parent();
}

const DecidedView& Communicator::view() const {
  return body_->view();
}

}  // namespace elastic::collectives::nccl
