import { type Cost, measure, type Pair, report } from './measure.js'
import type { Target } from './target.js'
import { download, upload } from './wire.js'

const MIB = 1024 * 1024

/** One large object up and down, proxy and gateway in turn, the one that begins changing by the round. */
export async function large(target: Target, rounds: number, size: number): Promise<void> {
  const up: Pair = { proxy: [], direct: [] }
  const down: Pair = { proxy: [], direct: [] }
  for (let round = 0; round < rounds; round++) {
    await inTurn(round, [
      async () => void up.proxy.push(await put(target, 'large-proxy', size)),
      async () => void up.direct.push(await putDirectly(target, 'large-direct', size)),
    ])
    await inTurn(round, [
      async () => void down.proxy.push(await get(target, 'large-proxy', size)),
      async () => void down.direct.push(await getDirectly(target, 'large-proxy', size)),
    ])
  }
  const mib = () => size / MIB
  report(`PUT ${mib()} MiB`, 'MiB', up, mib, 1024)
  report(`GET ${mib()} MiB`, 'MiB', down, mib, 1024)
}

export async function inTurn(round: number, runs: (() => Promise<void>)[]): Promise<void> {
  for (const run of round % 2 === 0 ? runs : [...runs].reverse()) await run()
}

function put(target: Target, key: string, size: number): Promise<Cost> {
  return measure(target, () => ok(upload(target.proxy, target.s3('PUT', key), {}, size)))
}

async function putDirectly(target: Target, key: string, size: number): Promise<Cost> {
  const { path, headers } = await target.direct('PUT', key)
  return measure(target, () => ok(upload(target.gateway, path, headers, size)))
}

function get(target: Target, key: string, size: number): Promise<Cost> {
  return measure(target, () => ok(download(target.proxy, target.s3('GET', key), {}, size)))
}

async function getDirectly(target: Target, key: string, size: number): Promise<Cost> {
  const { path, headers } = await target.direct('GET', key)
  return measure(target, () => ok(download(target.gateway, path, headers, size)))
}

export async function ok(status: Promise<number>): Promise<void> {
  if ((await status) !== 200) throw new Error(`status ${await status}`)
}
