import t from 'tap'
import { startDealgate } from '../../support/server/dealgate.js'
import { send } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

const ONE =
  '<LifecycleConfiguration><Rule><ID>off</ID><Status>Disabled</Status><Filter/><Expiration><Days>1</Days></Expiration></Rule><Rule><ID>old</ID><Status>Enabled</Status><Filter><Prefix>old/</Prefix></Filter><Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration></Rule><Rule><ID>soon</ID><Status>Enabled</Status><Filter><Prefix>soon/</Prefix></Filter><Expiration><Days>5</Days></Expiration></Rule></LifecycleConfiguration>'

t.test('the state of lifecycle rules says what they did, and what is due', async (t) => {
  const server = await startDealgate(t)
  const request = (method: string, target: string, body?: string) =>
    send(server, { method, target, ...(body !== undefined && { body: Buffer.from(body) }) })
  const state = async () => JSON.parse((await request('GET', '/photos?x-lifecycle=&format=json')).body.toString())
  t.equal((await request('GET', '/none?x-lifecycle=')).code, 'NoSuchBucket')
  await request('PUT', '/photos')
  t.match(await state(), { Rules: 0, LastPass: undefined, Due: [{ Days: 1, Objects: 0 }], Looked: 0, More: false })
  for (const key of ['old/a', 'old/b', 'soon/c', 'kept/d']) await request('PUT', `/photos/${key}`, 'content')
  t.equal((await request('PUT', '/photos?lifecycle', ONE)).status, 200)
  t.match(await state(), {
    ...{ Bucket: 'photos', Rules: 2, LastPass: undefined, Looked: 4 },
    Due: [
      { Days: 1, Objects: 2, Bytes: 14 },
      { Days: 7, Objects: 3, Bytes: 21 },
      { Days: 30, Objects: 3, Bytes: 21 },
    ],
  })
  // Rules are applied when a server starts.
  await server.stop()
  await server.start()
  const { LastPass, Due, NextDay } = await until('the rules were applied', async () => {
    const found = await state()
    return found.LastPass === undefined ? undefined : found
  })
  t.match(LastPass, { Complete: true, Scanned: 3, Expired: 2, Removed: 0, Transitioned: 0, Failed: 0 })
  t.ok(Date.parse(LastPass.Ended) <= Date.now())
  t.match(NextDay, /T00:00:00\.000Z$/)
  t.match(Due, [{ Objects: 0 }, { Objects: 1 }, { Objects: 1 }])
  t.equal((await request('PUT', '/photos?lifecycle', ONE.replace(/Enabled/g, 'Disabled'))).status, 200)
  t.match(await state(), { Rules: 0, Looked: 0 })
})
