import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import {
  ConfigError,
  flagOf,
  optionNames,
  options,
  readConfig,
  statedValue,
  unknownVariables,
} from '../../cli/config/config.js'
import { runCli } from '../support/server/cli.js'

function problemsOf(run: () => unknown): readonly string[] {
  try {
    run()
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

t.test('defaults: complete, checked by their own kind, frozen', async (t) => {
  const config = readConfig({ env: {} })
  t.match(config, { port: 9000, host: '127.0.0.1', region: 'us-east-1', accessLog: true, accessKey: undefined })
  t.ok(Object.isFrozen(config))
  t.ok(Object.isFrozen(config.signedBasePath))
  for (const name of optionNames) {
    const { default: value, kind } = options[name] as {
      default: unknown
      kind: { schema(): { safeParse(v: unknown): { success: boolean; data?: unknown } } }
    }
    if (value !== undefined)
      t.match(kind.schema().safeParse(statedValue(name, value)), { success: true, data: value }, `default of ${name}`)
  }
})

t.test('a flag wins over a variable, that over the file, that over the default', async (t) => {
  const file = join(t.testdir({}), 'dealgate.json')
  writeFileSync(file, JSON.stringify({ port: 1, host: 'file', region: 'file', data: '/file', uploadExpiryDays: 0 }))
  const env = { DEALGATE_PORT: '2', DEALGATE_HOST: 'env', DEALGATE_REGION: 'env', DEALGATE_DATA: '' }
  const config = readConfig({ flags: { config: file, port: '3', host: 'flag' }, env })
  t.match(config, { port: 3, host: 'flag', region: 'env', data: '/file', uploadExpiryMs: 0, gatewayPort: 9100 })
  t.equal(readConfig({ env: { ...env, DEALGATE_CONFIG: file } }).data, '/file', 'the environment may name the file')
})

t.test('every kind of value is read from text and from JSON', async (t) => {
  const file = join(t.testdir({}), 'dealgate.json')
  writeFileSync(file, JSON.stringify({ port: 0, accessLog: false, signedBasePath: ['/a', '/b/c'], logLevel: 'warn' }))
  const fromFile = readConfig({ flags: { config: file }, env: {} })
  const fromText = readConfig({
    env: {
      DEALGATE_PORT: '0',
      DEALGATE_ACCESS_LOG: 'off',
      DEALGATE_SIGNED_BASE_PATH: '/a,/b/c',
      DEALGATE_LOG_LEVEL: 'warn',
    },
  })
  t.same(fromFile, fromText)
  t.same(fromText.signedBasePath, ['/a', '/b/c'])
  t.same(readConfig({ flags: { signedBasePath: ['/x'] }, env: {} }).signedBasePath, ['/x'], 'a repeated flag')
})

t.test('a mistyped name is answered with the nearest one', async (t) => {
  const file = join(t.testdir({}), 'dealgate.json')
  writeFileSync(file, JSON.stringify({ prot: 1, gatewayUlr: 'http://x', xyzzy: 1 }))
  const problems = problemsOf(() => readConfig({ flags: { config: file }, env: {} })).join('\n')
  t.match(problems, /prot in .* is no option\. Did you mean port\?/)
  t.match(problems, /gatewayUlr in .* is no option\. Did you mean gatewayUrl\?/)
  t.match(problems, /xyzzy in .* is no option$/m)
  t.match(await runCli(['serve', '--prt=3']), { code: 2, stderr: /--prt=3 is no option .* Did you mean --port\?/ })
  t.match(await runCli(['kyes']), { code: 2, stderr: /kyes is no command.* Did you mean keys\?/ })
  t.match(await runCli(['keys', 'ad']), { code: 2, stderr: /Did you mean add\?/ })

  t.same(
    unknownVariables({
      DEALGATE_PORT: '1',
      DEALGATE_CONFIG: 'x',
      DEALGATE_GATEWAY_ULR: 'http://x',
      DEALGATE_XYZZY: '1',
      // Those of Kubernetes for a service of this name.
      DEALGATE_SERVICE_HOST: '10.0.0.1',
      DEALGATE_PORT_9000_TCP_ADDR: '10.0.0.1',
      OTHER: '1',
    }),
    [
      'The variable DEALGATE_GATEWAY_ULR belongs to no option and has no effect. Did you mean DEALGATE_GATEWAY_URL?',
      'The variable DEALGATE_XYZZY belongs to no option and has no effect',
    ],
  )
})

t.test('certificates in a config file are relative to it', async (t) => {
  const folder = t.testdir({})
  const file = join(folder, 'dealgate.json')
  const keys = { gatewayAccessKey: 'abc', gatewaySecretKey: 'abcdefgh' }
  const gateway = { gatewayUrl: 'https://g', ...keys, gatewayCa: 'ca.pem' }
  writeFileSync(file, JSON.stringify({ tlsKey: 'tls/a.key,/b.key', ...gateway }))
  const { tlsCert, tlsKey, gatewayCa } = readConfig({ flags: { config: file, tlsCert: ['c.pem', 'd.pem'] }, env: {} })
  t.same(tlsKey, [join(folder, 'tls/a.key'), '/b.key'])
  t.equal(gatewayCa, join(folder, 'ca.pem'))
  t.same(tlsCert, [resolve('c.pem'), resolve('d.pem')], 'those of flags to the working directory')
})

t.test('values out of bounds', async (t) => {
  const bad: Record<string, unknown[]> = {
    port: ['', '-1', '65536', '80a', '0x50', null, 1.5, true],
    host: ['', 'a b', 'a/b'],
    accessKey: ['ab', 'a'.repeat(129), 'a/b/c', 'a,b', 'a=b', 'a b', 'schlüssel'],
    secretKey: ['1234567', 'x'.repeat(129), 'with space'],
    signedBasePath: ['', '/', 'a', '/a/', '/a?b', '//a'],
    trustedProxies: ['', 'all', 'proxy.example', '10.0.0.1:80', '10.0.0.0/33', '10.0.0.1 ', ['10.0.0.1', '*'], 7],
    gatewayUrl: ['', 'localhost:9000', '/x', 'file:///x', 'http://u:p@x', 'http://x?y', 'http://x/#y'],
    state: ['mysql://x', 'memory'],
    kuboApi: ['', '127.0.0.1:5001', '/ip4/127.0.0.1/tcp/5001', 'ftp://x'],
    logLevel: ['trace', 'INFO', ''],
    accessLog: ['yes', '', 1],
    gatewayTimeoutSeconds: ['0', '3601'],
    uploadExpiryDays: ['-1', '3651'],
    maxDocumentBytes: ['1023', String(64 * 1024 * 1024 + 1)],
    gatewayQuirks: ['legacy;drop', 'noSuchQuirk', 'legacy,noSuchQuirk', 'none,legacy'],
    data: [''],
  }
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      const problems = problemsOf(() => readConfig({ flags: { [name]: value }, env: {} }))
      t.ok(
        problems.some((problem) => problem.startsWith(flagOf(name))),
        `${name} ${JSON.stringify(value)}: ${problems}`,
      )
    }
  }
})

t.test('options that belong together', async (t) => {
  const pair = { gatewayAccessKey: 'abc', gatewaySecretKey: 'secretsecret' }
  const of = (flags: Record<string, string>) => problemsOf(() => readConfig({ flags, env: {} })).join('\n')
  t.match(of({ accessKey: 'abc' }), /--access-key needs --secret-key/)
  t.match(
    of({ gatewayQuirks: 'nope' }),
    /^--gateway-quirks is not valid: "nope" is no gateway quirk: known are none, .* by commas$/,
  )
  t.match(of({ gatewayUrl: 'http://x' }), /--gateway-url needs --gateway-access-key and --gateway-secret-key/)
  t.match(of({ gatewayUrl: 'http://x', gatewayAccessKey: 'abc' }), /--gateway-access-key needs --gateway-secret-key/)
  t.equal(of(pair), '', 'the embedded gateway takes an account too')
  const another = { gatewayUrl: 'http://x', ...pair }
  t.equal(of({ ...another, platformUrl: 'http://y', paymentUrl: 'http://y' }), '')
  for (const name of ['gatewayPort', 'platformPort', 'paymentPort', 'kuboApi'] as const)
    t.match(of({ ...another, [name]: name === 'kuboApi' ? 'http://k' : '1' }), `${flagOf(name)} is for the embedded`)
  t.match(of({ platformUrl: 'http://y', platformSmtp: 'smtp://u:p@m' }), /--platform-smtp is for the embedded task/)
  t.match(of({ platformUrl: 'http://y', platformApiKey: 'k' }), /--platform-api-key needs --platform-access-token/)
  t.match(of({ platformApiKey: 'k', platformAccessToken: 't' }), /--platform-api-key is for another task platform/)
  t.match(of({ paymentUrl: 'http://y', paymentVariant: 'b' }), /--payment-variant is for the embedded storage payment/)
  const chain = {
    paymentChainUrl: 'https://node.example/key',
    paymentChainId: '1',
    paymentChainContract: `0x${'a'.repeat(40)}`,
    paymentChainToken: `0x${'B'.repeat(40)}`,
    paymentChainRecipient: `0x${'0'.repeat(40)}`,
  }
  t.equal(of(chain), '')
  t.match(of({ ...chain, paymentUrl: 'http://y' }), /--payment-chain-url is for the embedded storage payment/)
  t.match(of({ paymentChainUrl: chain.paymentChainUrl }), /--payment-chain-url needs --payment-chain-contract/)
  t.match(of({ paymentChainConfirmations: '3' }), /--payment-chain-confirmations needs --payment-chain-url/)
  t.match(of({ ...chain, paymentChainToken: '0x1' }), /--payment-chain-token must be 0x and 40 hexadecimal digits/)
  t.match(of({ platformSmtp: 'http://u:hidden@m' }), /^(?!.*hidden).*--platform-smtp must be a URL: smtp:/)
  t.match(of({ platformMailFrom: 'nobody' }), /--platform-mail-from must be a mail address/)
  t.equal(of({ kuboApi: 'http://user:pass@kubo:5001', networkEpochSeconds: '0.5' }), '')
  t.match(of({ kuboApi: 'http://kubo:5001', networkControl: 'on' }), /--network-control is for the embedded storage/)
})

t.test('plugins: names and paths, with options in the file, looked for where they are named', async (t) => {
  const folder = t.testdir({
    'dealgate.json': JSON.stringify({ plugins: ['deal', { use: './own.js', options: { word: 'Hi' } }] }),
  })
  const config = join(folder, 'dealgate.json')
  const of = (flags: Record<string, unknown>, env = {}) => readConfig({ flags, env }).plugins
  const from = process.cwd()
  t.equal(of({}), undefined, 'what comes along is not decided here')
  t.same(of({ config }), [
    { use: 'deal', from: folder },
    { use: './own.js', options: { word: 'Hi' }, from: folder },
  ])
  t.same(of({ config, plugin: ['x'] }), [{ use: 'x', from }])
  t.same(of({}, { DEALGATE_PLUGINS: 'deal,@scope/x' }), [
    { use: 'deal', from },
    { use: '@scope/x', from },
  ])
  t.same(of({}, { DEALGATE_PLUGINS: 'none' }), [])
  const wrong = (plugins: unknown) => {
    const file = join(t.testdir({ 'wrong.json': JSON.stringify({ plugins }) }), 'wrong.json')
    return problemsOf(() => readConfig({ flags: { config: file }, env: {} })).join()
  }
  t.match(wrong([{ use: 'x', option: { secret: 'hush' } }]), /^plugins in .*wrong.json has entries with other members/)
  t.notMatch(wrong([{ use: 'x', option: { secret: 'hush' } }]), 'hush')
  t.match(wrong([{ use: 'x', options: 'a' }]), /"options" of a plugin must be an object$/)
  for (const nonsense of [[5], [''], [null], 5, { deal: true }]) t.match(wrong(nonsense), /^plugins in .* must be /)
})

t.test('a config file that cannot be used', async (t) => {
  const folder = t.testdir({ broken: '{', list: '[]' })
  const of = (config: string) => problemsOf(() => readConfig({ flags: { config }, env: {} })).join('\n')
  t.match(of(join(folder, 'absent')), /^--config: cannot read .*absent/)
  t.match(of(join(folder, 'broken')), /^--config: cannot read .*broken/)
  t.match(of(join(folder, 'list')), /one JSON object/)
})
