// Single records as they stand in a result, for the store: a VariantRecord, BaselineRecord, ClassRecord or
// SearchAccount.
#pragma once

#include <string>

#include "tuner/core/json.h"
#include "tuner/core/result.h"

namespace tuner {

/// `measured` as in the result: without it no times are written.
template <class Record>
Json record_json(const Record& record, bool measured);
/// Throws UsageError beginning with `where` for what is no such record.
template <class Record>
Record read_record(const Json& json, const std::string& where, bool measured);

}  // namespace tuner
