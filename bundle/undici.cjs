// The parts of undici that dealgate uses. The whole package also loads fetch, WebSocket, caches and mocks: 0.1 s of CPU
// time and 10 MB at each start, in each thread.
const Dispatcher = require('undici/lib/dispatcher/dispatcher')
const Agent = require('undici/lib/dispatcher/agent')
const Client = require('undici/lib/dispatcher/client')
const Pool = require('undici/lib/dispatcher/pool')
const request = require('undici/lib/api/api-request')

// As the package does it.
Object.assign(Dispatcher.prototype, { request })

module.exports = {
  Agent,
  Client,
  Pool,
  /** That of the package, for the form in which we call it: a URL, and options with a dispatcher. */
  request(url, { dispatcher, ...options }) {
    const { origin, pathname, search } = new URL(url)
    return dispatcher.request({ ...options, origin, path: `${pathname}${search}`, method: options.method ?? 'GET' })
  },
  get FormData() {
    return require('undici/lib/web/fetch/formdata').FormData
  },
}
