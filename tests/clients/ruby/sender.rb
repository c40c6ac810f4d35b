# Sends one request on Ruby's net/http as stripe-ruby does (contract §3.4, §3.5, §4.3): a Bearer key, a form
# with its length, one Idempotency-Key for all attempts where retries are on, and stripe-ruby's rules for
# trying again.
#
#   ruby sender.rb [--key KEY] [--retries N] METHOD PATH [NAME=VALUE…]
#
# SPENDCAP_URL is the base URL and VAULT_KEY the key. Prints one JSON object about the last answer; its
# status is 0 where no answer came.

require "json"
require "net/http"
require "optparse"
require "securerandom"

# stripe-ruby's first delay is 0.5 s.
RETRY_DELAY_SECONDS = 0.05

# What stripe-ruby tries again among network faults.
FAULTS = [
  Net::OpenTimeout, Net::ReadTimeout, EOFError, Errno::ECONNREFUSED, Errno::ECONNRESET, Errno::EHOSTUNREACH,
  Errno::ETIMEDOUT, SocketError
].freeze

def build(method, uri, form, key)
  request = method == "POST" ? Net::HTTP::Post.new(uri) : Net::HTTP::Get.new(uri)
  request["Authorization"] = "Bearer #{ENV.fetch('VAULT_KEY')}"
  request["User-Agent"] = "spendcap-test (net/http as stripe-ruby)"
  return request unless method == "POST"

  request["Content-Type"] = "application/x-www-form-urlencoded"
  request["Idempotency-Key"] = key if key
  request.body = form
  request
end

def connect(uri)
  http = Net::HTTP.new(uri.host, uri.port)
  http.open_timeout = 30
  http.read_timeout = 80
  http.write_timeout = 30
  http.max_retries = 0
  http.start
end

def send_once(request, uri)
  response = connect(uri).request(request)
  body = JSON.parse(response.body)
  error = body["error"] || {}
  { status: response.code.to_i, id: body["id"].to_s, type: error["type"].to_s, code: error["code"].to_s,
    failure: "", should_retry: response["Stripe-Should-Retry"] }
rescue *FAULTS, JSON::ParserError => e
  { status: response ? response.code.to_i : 0, id: "", type: "", code: "", failure: e.class.name,
    should_retry: response && response["Stripe-Should-Retry"] }
end

def retryable?(seen)
  return true if seen[:status].zero?
  return seen[:should_retry] == "true" if %w[true false].include?(seen[:should_retry])

  lock_timeout = seen[:status] == 429 && seen[:code] == "lock_timeout"
  seen[:status] == 409 || seen[:status] >= 500 || lock_timeout
end

options = { retries: 2 }
OptionParser.new do |parser|
  parser.on("--key KEY") { |key| options[:key] = key }
  parser.on("--retries N", Integer) { |retries| options[:retries] = retries }
end.parse!
method, path, *fields = ARGV
abort "usage: sender.rb [--key KEY] [--retries N] METHOD PATH [NAME=VALUE…]" unless path

form = URI.encode_www_form(fields.map { |field| field.split("=", 2) })
uri = URI(ENV.fetch("SPENDCAP_URL") + path)
uri.query = form if method == "GET" && !form.empty?
key = options[:key] || (SecureRandom.uuid if options[:retries].positive?)
request = build(method, uri, form, key)
(1..).each do |attempt|
  seen = send_once(request, uri)
  if attempt > options[:retries] || !retryable?(seen)
    puts JSON.generate(attempts: attempt, **seen.reject { |name| name == :should_retry })
    break
  end
  sleep RETRY_DELAY_SECONDS
end
