import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import t, { type Test } from 'tap'
import { redis } from '../src/state/servers.js'
import { Authority, type CertificateFiles } from '../support/content/certificates.js'
import { temporaryFolder } from '../support/content/folders.js'
import { startGateway } from '../support/gateway/embedded.js'
import type { GatewayAddress } from '../support/gateway/gateway-address.js'
import { findClient, run, runAny } from '../support/programs/run.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { lastingPort } from '../support/server/ports.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

/** Puts TLS in front of a gateway; clients need a certificate of the authority. */
async function secured(t: Test, gateway: GatewayAddress, authority: Authority, files: CertificateFiles) {
  const sockets = new Set<Socket>()
  const [cert, key] = [readFileSync(files.cert), readFileSync(files.key)]
  const server = createServer(
    { cert, key, ca: authority.pem, requestCert: true, rejectUnauthorized: true },
    (inner) => {
      const outer = connect(Number(new URL(gateway.url).port), '127.0.0.1')
      for (const socket of [inner, outer]) {
        sockets.add(socket)
        socket
          .on('error', () => {})
          .once('close', () => {
            inner.destroy()
            outer.destroy()
            sockets.delete(socket)
          })
      }
      inner.pipe(outer).pipe(inner)
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { accessKey, secretKey } = gateway
  return { accessKey, secretKey, url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

function endOf({ cert }: Pick<CertificateFiles, 'cert'>): string {
  return new Date(new X509Certificate(readFileSync(cert)).validTo).toISOString()
}

t.test('HTTPS for clients and to the gateway, with a client certificate', async (t) => {
  const folder = temporaryFolder(t)
  const authority = new Authority(folder)
  const own = authority.issue('own', 'DNS:localhost,IP:127.0.0.1')
  const client = authority.issue('client', 'DNS:proxy')
  const gateway = await secured(t, await startGateway(t, 'legacy'), authority, authority.issue('gw', 'IP:127.0.0.1'))
  const tls = ['--tls-cert', own.cert, '--tls-key', own.key]
  const toGateway = ['--gateway-ca', authority.file, '--gateway-cert', client.cert, '--gateway-key', client.key]
  const server = await startDealgate(t, {
    gateway,
    args: [...tls, ...toGateway, '--passthrough', '--metrics-port', '0'],
  })
  t.match(server.endpoint, /^https:\/\/127\.0\.0\.1:\d+$/)
  const metrics = await (await fetch(server.metrics)).text()
  for (const [option, { cert }] of Object.entries({ 'tls-cert': own, 'gateway-cert': client })) {
    const until = Date.parse(endOf({ cert })) / 1000
    const line = `dealgate_certificate_expiry_timestamp_seconds{option="${option}",number="1"} ${until}\n`
    t.ok(metrics.includes(line), `the metrics have the end of ${option}`)
  }
  const curl = await findClient(t, 'curl')

  await t.test('presigned by `dealgate presign`, for curl and node', { skip: !curl }, async (t) => {
    const config = { DEALGATE_TLS_CERT: own.cert, DEALGATE_TLS_KEY: own.key }
    const at = ['--port', String(server.port), '--data', server.data]
    const presign = async (method: string, key: string) => {
      const { stdout } = await runCli(['presign', `s3://bucket-0/${key}`, '--method', method, ...at], config)
      return stdout.trim()
    }
    const signing = ['--aws-sigv4', `aws:amz:${server.region}:s3`, '-u', `${server.accessKey}:${server.secretKey}`]
    await run('curl', ['-sSf', '--cacert', authority.file, ...signing, '-X', 'PUT', `${server.endpoint}/bucket-0`])
    const upkeep = `${server.endpoint}/-/upkeep/v1?format=json`
    t.match(JSON.parse(String(await run('curl', ['-sSf', '--cacert', authority.file, ...signing, upkeep]))), {
      Certificates: [
        { Option: 'tls-cert', ValidUntil: endOf(own) },
        { Option: 'gateway-cert', ValidUntil: endOf(client) },
      ],
    })
    const put = await presign('PUT', 'b')
    t.ok(put.startsWith(`${server.endpoint}/bucket-0/b?`))
    await run('curl', ['-sSf', '--cacert', authority.file, '-T', authority.file, put])
    const got = await run('curl', ['-sSf', '--cacert', authority.file, await presign('GET', 'b')])
    t.equal(got.toString(), authority.pem)
    const fetching = `const r = await fetch(${JSON.stringify(await presign('GET', 'b'))}); console.log(r.status)`
    const node = (more: Record<string, string>) =>
      runAny(process.execPath, ['--input-type=module', '-e', fetching], { env: more })
    t.equal((await node({ NODE_EXTRA_CA_CERTS: authority.file })).stdout.toString(), '200\n')
    t.match((await node({})).stderr, /UNABLE_TO_VERIFY_LEAF_SIGNATURE/, 'the authority is not one that Node knows')
    t.not((await runAny('curl', ['-sS', server.endpoint.replace('https', 'http')])).code, 0, 'no plain HTTP')
    const rpc = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'web.ServerInfo', params: {} })
    const passed = ['-sS', '--cacert', authority.file, '-A', 'Mozilla', '-H', 'content-type: application/json']
    const answer = await run('curl', [...passed, '-d', rpc, `${server.endpoint}/gateway/webrpc`])
    t.match(answer.toString(), /"jsonrpc":"2.0"/, 'the passed-through request has the client certificate, too')
  })

  await t.test('a gateway of another authority, or one that wants a certificate, is refused by name', async (t) => {
    const stranger = new Authority(folder, 'stranger')
    for (const [args, code] of [
      [['--gateway-ca', stranger.file], /No secure connection to the object gateway: [A-Z_]+(CERT|SIGNATURE)/],
      [[], /No secure connection to the object gateway: (UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN)/],
    ] as const) {
      const refused = await startDealgate(t, { gateway, args })
      const answer = await fetch(`${refused.endpoint}/-/ready`)
      t.equal(answer.status, 503)
      t.match(await answer.text(), code)
      // The log comes on another pipe than the line that says it is ready.
      await until('the log says so', () => refused.log.includes('the gateway cannot be used yet'))
    }
  })
})

t.test('options that cannot work are refused', async (t) => {
  const folder = temporaryFolder(t)
  const { file } = new Authority(folder)
  const data = join(folder, 'data')
  for (const [args, message] of [
    [['--tls-cert', file], /--tls-cert and --tls-key must be given equally often/],
    [['--tls-cert', file, '--tls-key', file], /contains no private key in PEM/],
    [
      ['--tls-cert', join(folder, 'none'), '--tls-key', file],
      /Cannot serve HTTPS \(--tls-cert, --tls-key\): cannot read .*none: ENOENT/,
    ],
    [['--gateway-ca', file], /--gateway-ca needs an https:\/\/ address in --gateway-url/],
    [['--gateway-cert', file], /--gateway-cert needs --gateway-key beside it/],
  ] as const) {
    const { code, stderr } = await runCli(['serve', '--data', data, '--port', '0', '--gateway-port', '0', ...args])
    t.not(code, 0)
    t.match(stderr, message)
  }
})

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
  t.match(refused, {
    code: 1,
    stderr: /The state store rediss:\/\/127\.0\.0\.1:\d+ cannot be used \(--state\): .*certificate/,
  })

  const dealgate = await startDealgate(t, { args, env: { NODE_EXTRA_CA_CERTS: authority.file } })
  t.equal((await send(dealgate, { method: 'PUT', target: '/bucket' })).status, 200)
  t.equal((await send(dealgate, { method: 'PUT', target: '/bucket/key', body: Buffer.from('x') })).status, 200)
})
