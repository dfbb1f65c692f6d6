import { join } from 'node:path'
import type { Endpoint } from '../../test/suites/sign.js'
import { OWN } from '../results/runs.js'
import { makeBucket, npmStart } from '../servers/dealgate.js'
import { startPeers } from '../servers/peers.js'
import { s3Requests } from '../servers/s3-requests.js'
import { requestsOf } from './jobs.js'
import { type Found, type GoalsContext, rowOf } from './part.js'

const PEER = 'versitygw --keep-alive'
const CONNECTIONS = 16
const FIRST = 2000

export interface Begun {
  /** From the start of the process to its first line, which it prints when it is ready. */
  readonly readyMs: number
  readonly cpuMs: number
  /** CPU of the first 2,000 GETs after it. */
  readonly firstMs: number
}

/** A second start by `npm start`, and the first requests after it. */
export async function start({ folder, load, rounds, installed, progress }: GoalsContext): Promise<Found> {
  progress('starts by npm start')
  const own = await starts(join(folder, 'start'), load, process.execPath, rounds)
  const peer: number[] = []
  const absent: string[] = []
  for (let round = 0; round < rounds; round++) {
    const began = performance.now()
    const peers = await startPeers(join(folder, `start-${round}`), installed, true, [PEER])
    if (peers.subjects.length > 0) peer.push(performance.now() - began)
    else if (round === 0) absent.push(...peers.absent)
    for (const { processes } of peers.subjects) for (const { program } of processes) await program.stop()
  }
  const row = (name: string, of: (begun: Begun) => number, atMost: number, other?: readonly number[]) => {
    const samples = new Map<string, readonly number[]>([[OWN, own.map(of)]])
    if (other && other.length > 0) samples.set(PEER, other)
    return { ...rowOf({ part: 'start', name, unit: 'ms', goal: { atMost } }, samples), ratios: {} }
  }
  return {
    rows: [
      row('from npm start to ready', (one) => one.readyMs, 450, peer),
      row('CPU of that', (one) => one.cpuMs, 600),
      row(`CPU of the first ${FIRST} GETs of 1 KiB`, (one) => one.firstMs, 1000),
    ],
    absent,
  }
}

/** @param node the program of Node.js */
export async function starts(
  data: string,
  load: GoalsContext['load'],
  node: string,
  rounds: number,
): Promise<readonly Begun[]> {
  let secretKey = ''
  const begun: Begun[] = []
  // The first start makes the data folder, and what a start may keep for the next one.
  for (let round = -1; round < rounds; round++) {
    const began = performance.now()
    const program = npmStart(node, data)
    try {
      const printed = JSON.parse(await program.firstLine()) as Endpoint
      const readyMs = performance.now() - began
      const cpuMs = (await program.usage()).cpuSeconds * 1000
      if (round < 0) secretKey = printed.secretKey
      const server = { ...printed, secretKey }
      const subject = { host: '127.0.0.1', port: Number(new URL(server.endpoint).port), ...s3Requests(server) }
      if (round < 0) {
        await makeBucket(server, 'bench')
        await load.run(requestsOf(subject, 'PUT', { connections: CONNECTIONS, count: 100 }))
      }
      // The load compiles its code in the round that does not count.
      const before = (await program.usage()).cpuSeconds
      await load.run(requestsOf(subject, 'GET', { connections: CONNECTIONS, count: FIRST }))
      const firstMs = ((await program.usage()).cpuSeconds - before) * 1000
      if (round >= 0) begun.push({ readyMs, cpuMs, firstMs })
    } finally {
      await program.stop()
    }
  }
  return begun
}
