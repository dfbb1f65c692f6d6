import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Between, type Fate } from '../support/gateway/between.js'
import { postgres, redis } from './servers.js'
import { lostLocks, type OneOfSeveral, startSeveral } from './several-proxies.js'

// Settings of buckets, changed and relied on through two proxies that share a state store.

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 3)

const block = (...names: string[]) => {
  const all = ['BlockPublicAcls', 'IgnorePublicAcls', 'BlockPublicPolicy', 'RestrictPublicBuckets']
  const elements = all.map((name) => `<${name}>${names.includes(name)}</${name}>`).join('')
  return `<PublicAccessBlockConfiguration>${elements}</PublicAccessBlockConfiguration>`
}
const tagging = (value: string) =>
  `<Tagging><TagSet><Tag><Key>team</Key><Value>${value}</Value></Tag></TagSet></Tagging>`
const cors =
  '<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>'
const lifecycle =
  '<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status><Filter><Prefix></Prefix></Filter><Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>'
const publicPolicy = (bucket: string) =>
  JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      { Effect: 'Allow', Principal: '*', Action: 's3:ListBucket', Resource: `arn:aws:s3:::${bucket}` },
      { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: `arn:aws:s3:::${bucket}/*` },
    ],
  })

async function ok(t: Test, proxy: OneOfSeveral, method: string, path: string, query: object, body = '') {
  const answer = await proxy.send(method, path, { query: query as Record<string, string>, body })
  t.ok(answer.status < 300, `${method} ${path} ${JSON.stringify(query)}: ${answer.status} ${answer.code}`)
}

for (const kind of [redis, postgres]) {
  t.test(kind.name, { skip: kind.skip, timeout: 600_000 }, async (t) => {
    const server = await kind.start()
    t.teardown(() => server.stop())

    t.test('no acknowledged setting vanishes, also where locks are lost', async (t) => {
      const several = await startSeveral(t, server.url)
      const one = await several.start('one', { change: lostLocks })
      const two = await several.start('two', { change: lostLocks })
      const three = await several.start('three')
      await ok(t, one, 'PUT', '/kept', {})
      for (let round = 0; round < ROUNDS; round++) {
        await Promise.all([
          ok(t, one, 'PUT', '/kept', { tagging: '' }, tagging(`${round}`)),
          ok(t, two, 'PUT', '/kept', { publicAccessBlock: '' }, block('BlockPublicPolicy')),
          ok(t, one, 'PUT', '/kept', { cors: '' }, cors),
          ok(t, two, 'PUT', '/kept', { lifecycle: '' }, lifecycle),
        ])
        const found = await Promise.all(
          ['publicAccessBlock', 'tagging', 'cors', 'lifecycle'].map((name) =>
            three.send('GET', '/kept', { query: { [name]: '' } }),
          ),
        )
        t.same(
          found.map(({ status }) => status),
          [200, 200, 200, 200],
        )
        t.match(found[1]?.body, `<Value>${round}</Value>`)
        await Promise.all([
          ok(t, one, 'DELETE', '/kept', { tagging: '' }),
          ok(t, two, 'DELETE', '/kept', { publicAccessBlock: '' }),
          ok(t, two, 'DELETE', '/kept', { cors: '' }),
          ok(t, one, 'DELETE', '/kept', { lifecycle: '' }),
        ])
        const gone = await Promise.all(
          ['publicAccessBlock', 'tagging', 'cors', 'lifecycle'].map((name) =>
            three.send('GET', '/kept', { query: { [name]: '' } }),
          ),
        )
        t.same(
          gone.map(({ status }) => status),
          [404, 404, 404, 404],
          'and none comes back',
        )
      }
    })

    for (const mode of ['full', 'legacy'] as const) {
      t.test(`what one proxy blocks the other one refuses at once: ${mode}`, async (t) => {
        const several = await startSeveral(t, server.url, mode)
        const one = await several.start('one')
        const two = await several.start('two')
        const bucket = `blocked-${mode}`
        await ok(t, one, 'PUT', `/${bucket}`, {})
        for (const name of ['BlockPublicPolicy', 'RestrictPublicBuckets']) {
          // Both proxies remember that the bucket has no block.
          t.equal((await two.send('GET', `/${bucket}`, { query: { publicAccessBlock: '' } })).status, 404)
          await fetch(`${two.endpoint}/${bucket}/open/x`)
          await ok(t, one, 'PUT', `/${bucket}`, { publicAccessBlock: '' }, block(name))
          const refused = await two.send('PUT', `/${bucket}`, { query: { policy: '' }, body: publicPolicy(bucket) })
          if (name === 'BlockPublicPolicy') t.match(refused, { status: 403, code: 'AccessDenied' }, name)
          else {
            t.equal(refused.status, 204, 'the policy is stored, and opens nothing')
            t.equal((await fetch(`${two.endpoint}/${bucket}/open/x`)).status, 403, 'the server stays closed')
            t.equal((await fetch(`${several.gateway.url}/${bucket}/open/x`)).status, 403, 'the gateway stays closed')
            await ok(t, two, 'DELETE', `/${bucket}`, { policy: '' })
          }
          await ok(t, one, 'DELETE', `/${bucket}`, { publicAccessBlock: '' })
        }
        await ok(t, two, 'PUT', `/${bucket}`, { policy: '' }, publicPolicy(bucket))
        await ok(t, one, 'PUT', `/${bucket}/open/x`, {}, 'public')
        const acl = { headers: { 'x-amz-acl': 'public-read' } }
        t.equal((await two.send('PUT', `/${bucket}/open/x`, { query: { acl: '' }, ...acl })).status, 200)
        await ok(t, one, 'PUT', `/${bucket}`, { publicAccessBlock: '' }, block('BlockPublicAcls'))
        t.equal((await two.send('PUT', `/${bucket}/open/x`, { query: { acl: '' }, ...acl })).status, 403)
      })
    }

    t.test('rules that one proxy removes delete nothing more at the other one', async (t) => {
      let between: Between | undefined
      const several = await startSeveral(t, server.url, 'full', async (gateway) => {
        between = await Between.start(t as Test, gateway)
        return between
      })
      const one = await several.start('one')
      await ok(t, one, 'PUT', '/ruled', {})
      const keys = Array.from({ length: 24 }, (_, i) => `k${i}`)
      await Promise.all(keys.map((key) => ok(t, one, 'PUT', `/ruled/${key}`, {}, 'x')))
      await ok(t, one, 'PUT', '/ruled', { lifecycle: '' }, lifecycle)
      let removals = 0
      let removed: Promise<unknown> | undefined
      if (between) {
        between.fate = async ({ body }): Promise<Fate> => {
          if (!body.includes('"web.RemoveObject"')) return 'pass'
          removals++
          // Those under way wait until the other proxy has acknowledged that the rules are gone.
          removed ??= ok(t, one, 'DELETE', '/ruled', { lifecycle: '' })
          await removed
          return 'pass'
        }
      }
      const later = Date.now() + 5 * 86_400_000
      const two = await several.start('two', { now: () => later, lifecycleIntervalMs: 60_000 })
      while (removed === undefined) await sleep(5)
      await removed
      // The pass has ended when its lease is free again.
      await two.close()
      t.ok(removals <= 4, `${removals} removals were under way when the rules went; no other one followed`)
      const left = await one.send('GET', '/ruled', { query: { 'list-type': '2' } })
      t.equal(left.body.match(/<Key>/g)?.length, 24 - removals)
    })
  })
}
