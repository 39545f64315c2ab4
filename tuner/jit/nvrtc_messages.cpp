#include "tuner/jit/nvrtc_messages.h"

#include <cstdlib>

namespace tuner {
namespace {

void add_list(Fields& fields, const std::vector<std::string>& list) {
  fields.push_back(std::to_string(list.size()));
  fields.insert(fields.end(), list.begin(), list.end());
}

/// Takes fields in turn; once one is missing everything after it is empty and complete() is false.
class FieldReader {
 public:
  explicit FieldReader(const Fields& fields) : fields_(fields) {}

  std::string text() {
    if (at_ < fields_.size()) return fields_[at_++];
    missing_ = true;
    return {};
  }
  double number() { return std::strtod(text().c_str(), nullptr); }
  std::size_t count() { return std::strtoull(text().c_str(), nullptr, 10); }
  std::vector<std::string> list() {
    std::vector<std::string> items;
    for (std::size_t left = count(); left > 0 && !missing_; --left) items.push_back(text());
    return items;
  }
  bool complete() const { return !missing_ && at_ == fields_.size(); }

 private:
  const Fields& fields_;
  std::size_t at_ = 0;
  bool missing_ = false;
};

}  // namespace

Fields to_fields(const NvrtcFound& found) {
  return {found.path, found.tried, found.version, found.fingerprint, found.archs, found.fixed_addresses ? "1" : "0"};
}

std::optional<NvrtcFound> found_from(const Fields& fields) {
  if (fields.size() != 6) return std::nullopt;
  return NvrtcFound{fields[0], fields[1], fields[2], fields[3], fields[4], fields[5] == "1"};
}

Fields to_fields(const NvrtcRequest& request) {
  Fields fields{std::to_string(request.limits.seconds), std::to_string(request.limits.memory_bytes),
                request.want_ptx ? "1" : "0", request.unit.source};
  add_list(fields, request.unit.kernels);
  add_list(fields, request.unit.options);
  std::vector<std::string> names, contents;
  for (const auto& [name, content] : request.headers) {
    names.push_back(name);
    contents.push_back(content);
  }
  add_list(fields, names);
  add_list(fields, contents);
  return fields;
}

std::optional<NvrtcRequest> request_from(const Fields& fields) {
  FieldReader reader(fields);
  NvrtcRequest request;
  request.limits.seconds = reader.number();
  request.limits.memory_bytes = reader.count();
  request.want_ptx = reader.text() == "1";
  request.unit.source = reader.text();
  request.unit.kernels = reader.list();
  request.unit.options = reader.list();
  const auto names = reader.list();
  const auto contents = reader.list();
  if (!reader.complete() || names.size() != contents.size()) return std::nullopt;
  for (std::size_t i = 0; i < names.size(); ++i) request.headers.emplace_back(names[i], contents[i]);
  return request;
}

Fields to_fields(const NvrtcReply& reply) {
  Fields fields{reply.ok ? "1" : "0", reply.died ? "1" : "0",          reply.reason, reply.log,
                reply.code,           std::to_string(reply.compile_ms)};
  add_list(fields, reply.lowered_names);
  return fields;
}

std::optional<NvrtcReply> reply_from(const Fields& fields) {
  FieldReader reader(fields);
  NvrtcReply reply;
  reply.ok = reader.text() == "1";
  reply.died = reader.text() == "1";
  reply.reason = reader.text();
  reply.log = reader.text();
  reply.code = reader.text();
  reply.compile_ms = reader.number();
  reply.lowered_names = reader.list();
  if (!reader.complete()) return std::nullopt;
  return reply;
}

}  // namespace tuner
