import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { NETWORK, newKeys } from '../../services/payment/payment-client.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { ask, completed, ManyDeaths, rows } from '../../support/server/many-deaths.js'
import { send } from '../../support/sign/send.js'
import { farFromMidnight, until } from '../../support/waiting.js'

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 1)
t.setTimeout(900_000 + ROUNDS * 60_000)
/** Orders under way when the server is killed. */
const AT_ONCE = 3
const BUCKET = 'killed'
/** Several blocks, so that a death comes within a file, too. */
const SIZE = 2 * 1024 * 1024

interface Made {
  readonly JobId: string
  readonly SourceFileUploadId: number
  readonly PayloadCid: string
}

function order(server: Dealgate, key: string, wait: number) {
  return ask(server, 'POST', `/${BUCKET}/${key}?x-pay=`, {
    json: { DurationDays: 180 },
    headers: { 'x-amz-client-token': `token-${key}`, prefer: `wait=${wait}` },
  })
}

/** Files that requests pass on. */
class DirectFiles {
  readonly #server: Dealgate
  /** A job that the service turns out not to have made needs another token. */
  readonly #turns = new Map<string, number>()

  constructor(server: Dealgate) {
    this.#server = server
  }

  send(name: string) {
    const turn = this.#turns.get(name) ?? 0
    return send(this.#server, {
      method: 'POST',
      target: `/-/pay/v1/uploads?duration-days=180&file-name=${name}&format=json`,
      headers: { 'x-amz-client-token': `${name}-${turn}`, prefer: 'wait=60' },
      body: Buffer.alloc(SIZE, name),
    })
  }

  completed(name: string): Promise<Made> {
    return until(`${name} is complete`, async () => {
      const { status, body } = await this.send(name)
      const json = JSON.parse(body.toString())
      if (json.Code === 'OperationAborted') this.#turns.set(name, (this.#turns.get(name) ?? 0) + 1)
      else if (status !== 200 && status !== 202) throw new Error(`${name}: ${status} ${JSON.stringify(json)}`)
      return status === 200 && (json as Made)
    })
  }
}

t.test(`killed at ${ROUNDS} random moments during uploads: each is made once`, async (t) => {
  await farFromMidnight()
  const config = join(temporaryFolder(t), 'dealgate.json')
  // An upload that the service does not have when the server is back is made again soon.
  writeFileSync(config, JSON.stringify({ plugins: ['deal', { use: 'pay', options: { reconcileAfterSeconds: 1 } }] }))
  const server = await startDealgate(t, { args: ['--config', config] })
  const keys = newKeys()
  const PublicKeyAddress = keys.address
  const { Nonce } = (await ask(server, 'POST', '/-/pay/v1/wallet/nonce', { json: { PublicKeyAddress } })).json
  const session = { Nonce, Signature: keys.sign(Nonce), PublicKeyAddress, Network: NETWORK, Store: true }
  t.match(await ask(server, 'POST', '/-/pay/v1/wallet/session', { json: session }), { json: { Stored: true } })
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const deaths = new ManyDeaths(server)
  const direct = new DirectFiles(server)
  const ids = new Set<number>()
  for (let round = 0; round < ROUNDS; round++) {
    const names = Array.from({ length: AT_ONCE }, (_, i) => `file-${round}-${i}`)
    for (const name of names) {
      const put = await send(server, { method: 'PUT', target: `/${BUCKET}/${name}`, body: Buffer.alloc(SIZE, name) })
      t.equal(put.status, 200)
    }
    const file = `direct-${round}`
    await deaths.during(() => Promise.all([...names.map((name) => order(server, name, 60)), direct.send(file)]))
    ids.add((await direct.completed(file)).SourceFileUploadId)
    for (const name of names) {
      const made = await completed<Made>(name, () => order(server, name, 120))
      ids.add(made.SourceFileUploadId)
      t.match(await ask(server, 'GET', `/${BUCKET}/${name}?x-pay=`), {
        json: { Uploads: [{ SourceFileUploadId: made.SourceFileUploadId, Status: 'Pending', Current: true }] },
      })
    }
  }
  await server.stop()
  t.equal(ids.size, ROUNDS * (AT_ONCE + 1), 'no two of them have the same upload')
  t.equal(rows(server, 'payment/payment.db', 'uploads'), ids.size, 'the service has no others')
})
