import t from 'tap'
import { redis } from '../state/servers.js'
import { Authority } from '../support/content/certificates.js'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { lastingPort } from '../support/server/ports.js'
import { send } from '../support/sign/send.js'

t.test('TLS to Redis, by an authority that the process is told', { skip: redis.skip }, async (t) => {
  const authority = new Authority(temporaryFolder(t))
  const { cert, key } = authority.issue('redis', 'DNS:localhost,IP:127.0.0.1')
  const port = await lastingPort()
  const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', authority.file]
  const server = await redis.start(['--tls-port', String(port), '--tls-auth-clients', 'no', ...files]).catch(() => {})
  if (server === undefined) {
    t.pass('this Redis was built without TLS')
    return
  }
  t.teardown(() => server.stop())
  const args = ['--state', `rediss://127.0.0.1:${port}`]

  const refused = await runCli(['serve', '--port', '0', '--gateway-port', '0', '--data', temporaryFolder(t), ...args])
  t.match(refused, { code: 1, stderr: /The state store rediss:\/\/127\.0\.0\.1:\d+ cannot be used: .*certificate/ })

  const dealgate = await startDealgate(t, { args, env: { NODE_EXTRA_CA_CERTS: authority.file } })
  t.equal((await send(dealgate, { method: 'PUT', target: '/bucket' })).status, 200)
  t.equal((await send(dealgate, { method: 'PUT', target: '/bucket/key', body: Buffer.from('x') })).status, 200)
})
