import t, { type Test } from 'tap'
import { anyOrder } from '../../support/gateway/write-order.js'
import { RpcFailure, type Script, scriptedGateway, withFeatures } from './scripted-gateway.js'

/** Knows the service by one word only, which a test may change. */
async function namedGateway(t: Test, word: string) {
  const names = { known: word }
  const unknown = (method: string): never => {
    throw new RpcFailure(`rpc: can't find service "${method}"`)
  }
  const answers: NonNullable<Script['rpc']> = {
    'web.Login': () => ({ token: 'token' }),
    'web.ServerInfo': () => ({ GatewayVersion: '1' }),
    'web.ListBuckets': () => ({ buckets: null }),
    'web.ListObjects': () => ({ objects: null, writable: true }),
    'web.RemoveObject': () => ({}),
  }
  const rpc = Object.fromEntries(
    ['web', 'Web'].flatMap((service) =>
      Object.entries(answers).map(([name, answer]) => [
        name.replace('web', service),
        (...call: Parameters<typeof answer>) => (service === names.known ? answer(...call) : unknown(name)),
      ]),
    ),
  )
  return { gateway: await scriptedGateway(t, { rpc }), names }
}

t.test('the word for the service is found out once, and again when the gateway changes it', async (t) => {
  const { gateway, names } = await namedGateway(t, 'Web')
  const client = gateway.client()
  await client.ready()
  t.equal(gateway.count('web.Login'), 1, 'asked in vain')
  t.equal(gateway.count('Web.Login'), 1)
  t.equal(await client.bucketExists('bucket'), true, 'a listing')
  await client.remove('bucket', 'key', anyOrder())
  t.same(
    gateway.calls.filter(({ method }) => method.startsWith('web.')).map(({ method }) => method),
    ['web.Login'],
    'and not again',
  )

  names.known = 'web'
  t.equal(await client.bucketExists('bucket'), true, 'after an upgrade of the gateway')
  await client.remove('bucket', 'key', anyOrder())
  t.equal(gateway.count('Web.RemoveObject'), 1, 'the first one')
  t.equal(gateway.count('web.RemoveObject'), 1)
})

t.test('a gateway without web.Login is not ready, and not taken for a legacy one', async (t) => {
  const { gateway } = await namedGateway(t, 'neither')
  await t.rejects(gateway.client().ready(), { code: 'InternalError', message: /does not know web\.Login.*brand words/ })
  await t.rejects(gateway.client().features(), { code: 'InternalError' })
})

t.test('a gateway that describes itself before it can read its drives is not ready', async (t) => {
  let starting = true
  const gateway = await scriptedGateway(t, {
    rpc: {
      ...withFeatures(),
      'web.ListBuckets': () => {
        if (starting) throw new RpcFailure('Server not initialized, please try again')
        return { buckets: null }
      },
    },
  })
  const client = gateway.client()
  await t.rejects(client.ready(), { code: 'ServiceUnavailable' })
  starting = false
  await client.ready()
})
