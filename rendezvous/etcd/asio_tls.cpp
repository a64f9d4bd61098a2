// The part of Asio's TLS that is not a template.
#include <boost/asio/ssl/impl/src.hpp>
