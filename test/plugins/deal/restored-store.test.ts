import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLogger } from '../../../src/common/log.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { send } from '../../support/sign/send.js'
import { owner, startDealProxy, startEmbedded } from './proxy.js'

// A state store that is restored from a backup lacks the jobs of later requests. The client repeats such a request.

const terms = { MinerId: 't01000', Price: '0.000000000001', DurationEpochs: 518_400 }

for (const mode of ['full', 'legacy'] as const) {
  t.test(`${mode}: a client token pays once, also when its job is lost`, async (t) => {
    const gateway = await startEmbedded(t, mode)
    const data = temporaryFolder(t)
    const backup = join(temporaryFolder(t), 'backup')
    const start = async () => {
      const state = await openState({ data, log: createLogger({ level: 'silent' }) })
      t.teardown(() => state.close())
      const { endpoint, close: closeProxy } = await startDealProxy(t, gateway, { state })
      const server = { endpoint, accessKey: owner.accessKeyId, secretKey: owner.secretAccessKey, region: 'us-east-1' }
      const ask = async (target: string, token: string, more: object = {}) => {
        const { status, body } = await send(server, {
          ...{ method: 'POST', target: `${target}format=json` },
          body: Buffer.from(JSON.stringify({ ...terms, ...more })),
          headers: { 'content-type': 'application/json', 'x-amz-client-token': token, prefer: 'wait=60' },
        })
        const json = JSON.parse(body.toString())
        return { status, json, cid: json.Deal?.DealCid as string | undefined }
      }
      const close = async () => {
        await closeProxy()
        await state.close()
      }
      return { server, state, close, ask }
    }
    const made = async () => {
      const { text } = await gateway.calls.call({
        ...({ method: 'GET', endpoint: 'retrieve', bucket: 'photos', key: 'a', access: 'read' } as const),
        headers: { 'history-only': 'true' },
      })
      return [...text.matchAll(/"dealCid"/gi)].length
    }
    const first = await start()
    t.equal((await send(first.server, { method: 'PUT', target: '/photos' })).status, 200)
    t.equal((await send(first.server, { method: 'PUT', target: '/photos/a', body: Buffer.from('bytes') })).status, 200)
    await first.close()
    cpSync(data, backup, { recursive: true })

    const second = await start()
    const paid = await second.ask('/photos/a?x-deal=&', 'one')
    t.equal(paid.status, 200, JSON.stringify(paid.json))
    const ofBucket = await second.ask('/photos?x-deal=&', 'two')
    t.equal(ofBucket.status, 200, JSON.stringify(ofBucket.json))
    t.ok(paid.cid && ofBucket.cid, JSON.stringify(paid.json))
    await second.close()
    rmSync(data, { recursive: true })
    cpSync(backup, data, { recursive: true })
    t.equal(await made(), 1)

    const third = await start()
    const again = await third.ask('/photos/a?x-deal=&', 'one')
    const bucketAgain = await third.ask('/photos?x-deal=&', 'two')
    if (mode === 'full') {
      t.equal(again.status, 200, JSON.stringify(again.json))
      t.equal(again.cid, paid.cid)
      t.equal(bucketAgain.cid, ofBucket.cid)
    } else {
      t.match(again, { status: 409, json: { Code: 'DuplicateRequest', Details: { DealCid: paid.cid } } })
      t.match(bucketAgain, { status: 409, json: { Code: 'DuplicateRequest' } })
    }
    t.equal(await made(), 1, 'one deal')
    if (mode === 'full') {
      await send(third.server, { method: 'PUT', target: '/photos/a', body: Buffer.from('other bytes') })
      const replaced = await third.ask('/photos/a?x-deal=&', 'one-more')
      t.equal(replaced.status, 200)
      await third.state.records('jobs').delete(replaced.json.JobId)
      const expired = await third.ask('/photos/a?x-deal=&', 'one-more')
      t.match(expired, {
        status: 409,
        json: { Code: 'IdempotencyParameterMismatch', Details: { DealCid: replaced.cid } },
      })
      t.equal(await made(), 2)
      await send(third.server, { method: 'PUT', target: '/photos/a', body: Buffer.from('new bytes') })
      await third.state.records('jobs').delete(again.json.JobId)
      const changed = await third.ask('/photos/a?x-deal=&', 'one')
      t.equal(changed.status, 200, JSON.stringify(changed.json))
      t.not(changed.cid, paid.cid, 'another content is not in the deal of the first')
      return
    }
    const other = await third.ask('/photos/a?x-deal=&', 'three', { Force: true })
    t.equal(other.status, 200, JSON.stringify(other.json))
    t.not(other.cid, paid.cid)
    t.equal(await made(), 2, 'another token is another deal')
  })
}
