import t, { type Test } from 'tap'
import deal from '../../../plugins/deal/index.js'
import type { SchemaNode } from '../../../src/plugins/calls/shape.js'
import { rowsOf } from '../../../src/plugins/table.js'
import { corePlugins } from '../../../src/server/core-plugins.js'
import { startInProcess } from '../../support/server/in-process.js'
import { type Mode, modes } from '../../support/server/modes.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { owner as dealOwner, startDealProxy, startEmbedded } from '../deal/proxy.js'
import { lint } from '../describe/openapi/lint.js'
import { examplePlugin } from './example-plugin.js'

const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const plugins = [deal({}), examplePlugin()]
const declared = rowsOf([...corePlugins, ...plugins]).filter(({ operation }) => operation.call)

interface Shape {
  readonly type: string
  readonly members?: Readonly<Record<string, { readonly shape: string; readonly locationName?: string }>>
}

async function start(t: Test, mode: Mode = 'full') {
  const { endpoint } = await startInProcess(t, mode, {
    identities: [owner],
    plugins: [deal({ maxSpendPerDay: 'none', maxTimesAsk: 'none' }), examplePlugin()],
  })
  const send = (method: string, path: string, query: Record<string, string> = {}, body?: string) =>
    signedRequest(endpoint, owner, { method, path, query, ...(body !== undefined && { body }) })
  // biome-ignore lint/suspicious/noExplicitAny: a document of any shape, and every use compares it
  const ask = async (...args: Parameters<typeof send>): Promise<any> => {
    const { status, body } = await send(...args)
    if (status !== 200) throw new Error(`${args.join(' ')}: ${status} ${body}`)
    return JSON.parse(body)
  }
  return { send, ask }
}

t.test('every declared call is in the capabilities, in OpenAPI and in the AWS model', async (t) => {
  const { ask, send } = await start(t)
  t.same([...new Set(declared.map(({ plugin }) => plugin))].sort(), [
    'deal',
    'gateway',
    'jobs',
    's3',
    'self',
    'server',
    'test',
  ])
  const names = declared.map(({ operation }) => operation.name).sort()
  const { Operations, Plugins } = await ask('GET', '/-/capabilities')
  t.same(Operations.map(({ Name }: { Name: string }) => Name).sort(), names)
  t.same(Plugins.map(({ Name }: { Name: string }) => Name).sort(), [
    'deal',
    'gateway',
    'jobs',
    's3',
    'self',
    'server',
    'test',
  ])
  const listed = await ask('GET', '/-/plugins/v1')
  t.same(listed.Plugins.flatMap(({ Calls }: { Calls: string[] }) => Calls).sort(), names)
  const model = await ask('GET', '/-/aws-model.json')
  t.same(Object.keys(model.operations).sort(), names)
  const { paths } = await ask('GET', '/-/openapi.json')
  const ids = Object.values<Record<string, { operationId: string }>>(paths).flatMap(Object.values)
  t.same(
    ids.map(({ operationId }) => operationId).sort(),
    declared.map(({ plugin, operation: { name, on } }) => `${plugin}_${name}_${on.method}`).sort(),
  )
  const { pagination } = await ask('GET', '/-/aws-paginators.json')
  const paged = declared.filter(({ operation }) => operation.call?.pages !== undefined)
  t.same(Object.keys(pagination).sort(), paged.map(({ operation }) => operation.name).sort())
  for (const [name, { input_token, limit_key, output_token, more_results, result_key }] of Object.entries<
    Record<string, string>
  >(pagination)) {
    const { input, output } = model.operations[name]
    for (const member of [input_token, limit_key])
      t.ok(model.shapes[input.shape].members[member ?? ''], `${name}: ${member}`)
    for (const member of [output_token, more_results, result_key])
      t.ok(model.shapes[output.shape].members[member ?? ''], `${name}: ${member}`)
  }
  t.match(JSON.parse((await send('GET', '/-/aws-paginators.json', { plugin: 'none' })).body), {
    Code: 'InvalidArgument',
  })
})

t.test('a strict linter finds nothing wrong with the OpenAPI document', async (t) => {
  const { ask } = await start(t)
  const document = await ask('GET', '/-/openapi.json')
  // The rule about servers is for documents that are published: this one names the address it was read from.
  const elsewhere = { ...document, servers: [{ url: 'https://store.test' }] }
  t.match(document.servers, [{ url: /^http:\/\/127\.0\.0\.1:\d+$/ }])
  t.same(await lint(elsewhere), [])
})

/** What a count, a flag and an amount of money are, wherever they stand. */
const TYPES: Readonly<Record<string, string>> = {
  DurationEpochs: 'integer',
  Score: 'integer',
  PieceSize: 'integer',
  StartEpoch: 'integer',
  EndEpoch: 'integer',
  Days: 'integer',
  RenewBeforeDays: 'integer',
  VerifiedDeal: 'boolean',
  FastRetrieval: 'boolean',
  ConfirmPrice: 'boolean',
  Force: 'boolean',
  Price: 'string',
  VerifiedPrice: 'string',
  PricePerGibEpoch: 'string',
  MaxSpendPerDay: 'string',
}

const AWS_TYPES: Readonly<Record<string, string>> = { integer: 'long', boolean: 'boolean', string: 'string' }

t.test(
  'numbers, flags and amounts have one type in requests and answers, in OpenAPI and in the AWS model',
  async (t) => {
    const { ask } = await start(t)
    const seen = new Set<string>()
    const document = await ask('GET', '/-/openapi.json')
    walk(document, (at, name, node) => {
      const types = [node.type ?? []].flat().filter((type) => type !== 'null')
      t.ok(types.length <= 1, `${at} has one type`)
      const scalars = (node.anyOf ?? node.oneOf ?? []).filter(({ type }) => type !== 'object' && type !== 'null')
      t.ok(scalars.length <= 1, `${at} is no choice of scalars`)
      // The plugin of the tests has numbers of all kinds; those of the server are all counted.
      if (!at.includes('test')) t.not(node.type, 'number', `${at} is an integer or an amount`)
      if (at.includes('test') || !(name in TYPES)) return
      seen.add(name)
      t.equal(node.type, TYPES[name], `${at} is ${TYPES[name]}`)
      if (TYPES[name] === 'string') {
        t.type(node.pattern, 'string', `${at} says how amounts look`)
        t.match(node.description, /./, `${at} says what it is an amount of`)
        const pattern = new RegExp(node.pattern ?? '')
        t.match('0.000005', pattern)
        t.notMatch('much', pattern)
      }
    })
    t.same([...seen].sort(), Object.keys(TYPES).sort())
    const { shapes } = (await ask('GET', '/-/aws-model.json')) as { shapes: Record<string, Shape> }
    for (const [name, { members = {} }] of Object.entries(shapes))
      for (const [member, { shape }] of Object.entries(members)) {
        if (/Thing/.test(name) || !(member in TYPES)) continue
        t.equal(shapes[shape]?.type, AWS_TYPES[TYPES[member] ?? ''], `${name}.${member}`)
      }
  },
)

/** Calls `visit` with every schema of a document, and the name of the member that it is of. */
function walk(
  document: unknown,
  visit: (at: string, name: string, node: SchemaNode) => void,
  at = '#',
  name = '',
): void {
  if (typeof document !== 'object' || document === null) return
  const node = document as SchemaNode
  if (node.type !== undefined || node.anyOf || node.oneOf) visit(at, name, node)
  for (const [key, inner] of Object.entries(document)) {
    if (key !== 'properties') walk(inner, visit, `${at}/${key}`, key)
    else for (const [member, schema] of Object.entries(inner)) walk(schema, visit, `${at}/properties/${member}`, member)
  }
}

for (const mode of modes) {
  t.test(`${mode}: answers have the types that are described, however the request spells them`, async (t) => {
    const { ask, send } = await start(t, mode)
    await send('PUT', '/photos')
    await send('PUT', '/photos/a', {}, 'content')
    const spelt = [
      '{"MinerId":"t01000","Price":"0.0001","DurationEpochs":518400,"VerifiedDeal":false,"FastRetrieval":true}',
      '{"MinerId":"t01000","Price":0.0001,"DurationEpochs":"518400","VerifiedDeal":"false","FastRetrieval":1}',
      '<T><MinerId>t01000</MinerId><Price>0.0001</Price><DurationEpochs>518400</DurationEpochs><VerifiedDeal>FALSE</VerifiedDeal><FastRetrieval>true</FastRetrieval></T>',
      'MinerId=t01000&Price=0.0001&DurationEpochs=518400&VerifiedDeal=0&FastRetrieval=1',
    ]
    for (const body of spelt) {
      const quote = await ask('POST', '/photos/a', { 'x-deal-quote': '', format: 'json' }, body)
      t.match(quote, { DurationEpochs: 518400, Price: '0.0001', Total: '51.84', PieceSize: Number })
      for (const { Score, Price } of quote.Candidates) {
        t.ok(Number.isSafeInteger(Score))
        t.type(Price, 'string')
      }
    }
    const terms = {
      MinerId: 't01000',
      Price: '0.0001',
      DurationEpochs: 518400,
      VerifiedDeal: false,
      FastRetrieval: true,
    }
    const config = { 'x-deal-config': '', format: 'json' }
    for (const [i, body] of spelt.slice(0, 2).entries()) {
      const set = await ask('POST', '/photos', config, `{"Terms":[${body}]}`)
      t.same(set, { Terms: [terms] }, `spelling ${i}`)
      t.same(await ask('GET', '/photos', config), { Terms: [terms] })
    }
    const xml = (await send('GET', '/photos', { 'x-deal-config': '', format: 'xml' })).body
    t.match(xml, '<Price>0.0001</Price><DurationEpochs>518400</DurationEpochs><VerifiedDeal>false</VerifiedDeal>')
    const refused = await send(
      'POST',
      '/photos/a',
      { 'x-deal': '', format: 'json' },
      '{"MinerId":"t01000","Price":"much","DurationEpochs":"long","VerifiedDeal":"maybe"}',
    )
    t.match(JSON.parse(refused.body), {
      Code: 'DealTermsInvalid',
      Details: { Violations: [/^Price/, /^DurationEpochs/, /^VerifiedDeal/] },
    })
    const rounded = await send(
      'POST',
      '/photos/a',
      { 'x-deal-quote': '', format: 'json' },
      '{"Price":0.00000012345678901234567,"DurationEpochs":518400}',
    )
    t.match(JSON.parse(rounded.body), { Code: 'InvalidArgument', Message: /Price .*string/ })
  })
}

t.test('the score of a provider is an integer, its prices are text', async (t) => {
  const { ask, send } = await start(t)
  const { Providers } = await ask('GET', '/-/deal/v1/providers', { format: 'json' })
  t.ok(Providers.length > 0)
  for (const { Score, Price, VerifiedPrice } of Providers) {
    t.ok(Number.isSafeInteger(Score))
    t.match(Price, /^\d/)
    t.type(VerifiedPrice, 'string', 'also where the provider has none')
  }
  t.match((await send('GET', '/-/deal/v1/providers', { format: 'xml' })).body, /<Score>\d+<\/Score>/)
})

t.test('a configuration that an earlier version kept as it was sent has the types that are described', async (t) => {
  const { endpoint, host } = await startDealProxy(t, await startEmbedded(t, 'full'))
  const ask = (method: string, query: Record<string, string>) =>
    signedRequest(endpoint, dealOwner, { method, path: '/photos', query })
  await ask('PUT', {})
  await host.settings.set('photos', 'deal', {
    Terms: [{ MinerId: 't01000', Price: 5e-7 as unknown as string, DurationEpochs: '518400', VerifiedDeal: 'TRUE' }],
  })
  t.same(JSON.parse((await ask('GET', { 'x-deal-config': '', format: 'json' })).body), {
    Terms: [{ MinerId: 't01000', Price: '5e-7', DurationEpochs: 518400, VerifiedDeal: true }],
  })
})
