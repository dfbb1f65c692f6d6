import { existsSync, readdirSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import type { Test } from 'tap'
import { bytes, md5 } from '../../../support/content/content.js'
import { listen } from '../../../support/server/listen.js'
import { until } from '../../../support/waiting.js'
import type { TaskScene } from '../tasks/task-scene.js'

export const CAR = bytes('car', 300_000)
const MD5 = md5(CAR)

/** Starts a server of CARs that ends with the test. Returns its URL. */
export async function carServer(t: Test, answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return listen(server)
}

export const wholeCar: RequestListener = (_, response) => response.end(CAR)

/** A CSV of deals with the size and the MD5 of `CAR`. */
export function csvOfUrls(...urls: readonly string[]): string {
  return `file_source_url,md5,file_size\n${urls.map((url) => `${url},${MD5},${CAR.length}\n`).join('')}`
}

export interface ShownDeal {
  readonly id: number
  readonly status: string
  readonly note: string
  readonly file_path: string | null
  readonly deal_cid: string | null
}

/** Waits until the deals of the task have these states, in their order. */
export function hasDeals({ task }: TaskScene, uuid: string, ...states: readonly string[]): Promise<ShownDeal[]> {
  return until(`the deals are ${states.join()}`, async () => {
    const { deal } = await task(uuid)
    return deal.map(({ status }: ShownDeal) => status).join() === states.join() && deal
  })
}

/** Names of all files below the folder for CARs. */
export function filesOfCars({ scene }: TaskScene): string[] {
  const folder = join(scene.folder, 'platform', 'cars')
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.\w+$/.test(name))
}
