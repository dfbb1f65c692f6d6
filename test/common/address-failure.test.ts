import t from 'tap'
import { describeError, listenFailure } from '../../cli/command.js'
import { nameFailure } from '../../common/address-failure.js'

function failed(code: string, syscall = 'getaddrinfo'): Error {
  return Object.assign(new Error(`${syscall} ${code} a.test`), { code, syscall, hostname: 'a.test' })
}

t.test('a host name that cannot be resolved is named with the reason and the remedy', async (t) => {
  t.match(nameFailure(failed('ENOTFOUND')), /^the host name a\.test is unknown.*Check its spelling/)
  const now = /^the host name a\.test cannot be resolved now.*name servers of this machine/
  t.match(nameFailure(failed('EAI_AGAIN')), now)
  t.match(nameFailure(new TypeError('fetch failed', { cause: failed('EAI_AGAIN') })), now, 'within that of fetch')
  t.match(nameFailure(new AggregateError([failed('EAI_AGAIN'), failed('EAI_AGAIN')])), now, 'of several addresses')
  t.equal(nameFailure(failed('ECONNREFUSED', 'connect')), undefined, 'a host that refuses has a name')
  t.equal(nameFailure('EAI_AGAIN'), undefined)
})

t.test('an address to listen on that cannot be resolved names its option', async (t) => {
  const at = { host: 'a.test', port: 9000 }
  const flags = { host: '--host', port: '--port' }
  t.match(listenFailure(failed('EAI_AGAIN'), at, flags), { message: /a\.test:9000.*name servers.* --host\.$/ })
  t.match(listenFailure(failed('ENOTFOUND'), at, flags), { message: /a\.test is not an address.* --host\.$/ })
})

t.test('a failure of the system that a command reports has its remedy', async (t) => {
  const full = { code: 'ENOSPC', syscall: 'write', errno: -28 }
  const error = Object.assign(new Error('ENOSPC: no space left on device, write'), full)
  t.equal(
    describeError(error),
    'ENOSPC: no space left on device, write (the disk is full: free space, or remove objects)',
  )
})
