import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLogger } from '../../../src/common/log.js'
import { acceptLoss } from '../../../src/state/open-backend.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { send } from '../../support/sign/send.js'
import { farFromMidnight } from '../../support/waiting.js'
import { owner, startDealProxy, startEmbedded } from './proxy.js'

// A state store that is restored from a backup has lost what was spent since: the gateway lists it.

/** 0.0000005184 fil. */
const terms = { MinerId: 't01000', Price: '0.000000000001', DurationEpochs: 518_400 }

for (const mode of ['full', 'legacy'] as const) {
  t.test(`${mode}: the cap of the day counts deals whose records are lost`, async (t) => {
    await farFromMidnight()
    const gateway = await startEmbedded(t, mode)
    const data = temporaryFolder(t)
    const backup = join(temporaryFolder(t), 'backup')
    const start = async (maxSpendPerDay: string) => {
      const { endpoint, close } = await startDealProxy(t, gateway, { data, deal: { maxSpendPerDay } })
      const server = { endpoint, accessKey: owner.accessKeyId, secretKey: owner.secretAccessKey, region: 'us-east-1' }
      const put = (target: string, body = '') => send(server, { method: 'PUT', target, body: Buffer.from(body) })
      const ask = async (target: string, token: string) => {
        const { status, body } = await send(server, {
          ...{ method: 'POST', target: `${target}?x-deal=&format=json` },
          body: Buffer.from(JSON.stringify(terms)),
          headers: { 'content-type': 'application/json', 'x-amz-client-token': token, prefer: 'wait=60' },
        })
        const json = JSON.parse(body.toString())
        return { status, code: json.Code as string | undefined, cid: json.Deal?.DealCid as string | undefined }
      }
      return { put, ask, close }
    }
    const first = await start('none')
    t.equal((await first.put('/photos')).status, 200)
    for (const key of ['a', 'b', 'c']) t.equal((await first.put(`/photos/${key}`, 'bytes')).status, 200)
    await first.close()
    cpSync(join(data, 'state'), backup, { recursive: true })

    const second = await start('none')
    const paid = await second.ask('/photos/a', 'one')
    t.match(paid, { status: 200, cid: String })
    t.match(await second.ask('/photos', 'of the bucket'), { status: 200 })
    await second.close()
    rmSync(join(data, 'state'), { recursive: true })
    cpSync(backup, join(data, 'state'), { recursive: true })
    const noticing = await start('none')
    t.match(await noticing.ask('/photos/b', 'two'), { status: 503 })
    await noticing.close()
    t.equal(await acceptLoss({ data, log: createLogger({ level: 'silent' }) }), true)

    // Room for two deals, which are made already.
    const third = await start('0.0000012')
    t.match(await third.ask('/photos/b', 'two'), { code: 'SpendCapReached' })
    if (mode === 'full') t.same(await third.ask('/photos/a', 'one'), { ...paid }, 'what is listed is not paid again')
    t.match(await third.ask('/photos/c', 'three'), { code: 'SpendCapReached' })
    await third.close()
    const fourth = await start('0.000001600')
    t.match(await fourth.ask('/photos/b', 'two again'), { status: 200 }, 'no expense counts twice')
    t.match(await fourth.ask('/photos/c', 'three again'), { code: 'SpendCapReached' })
  })
}
