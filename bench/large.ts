import { report } from './report.js'
import type { Target } from './target.js'
import { download, upload } from './wire.js'

/** One large object up and down, proxy and gateway in turn. */
export async function large(target: Target, rounds: number, size: number): Promise<void> {
  const mib = size / 1024 / 1024
  const up = { proxy: [] as number[], direct: [] as number[] }
  const down = { proxy: [] as number[], direct: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    up.proxy.push(await rate(mib, () => upload(target.proxy, target.s3('PUT', 'large-proxy'), {}, size)))
    const put = await target.direct('PUT', 'large-direct')
    up.direct.push(await rate(mib, () => upload(target.gateway, put.path, put.headers, size)))
    down.proxy.push(await rate(mib, () => download(target.proxy, target.s3('GET', 'large-proxy'), {}, size)))
    const get = await target.direct('GET', 'large-proxy')
    down.direct.push(await rate(mib, () => download(target.gateway, get.path, get.headers, size)))
  }
  report(`PUT ${mib} MiB`, 'MiB/s', up.proxy, up.direct)
  report(`GET ${mib} MiB`, 'MiB/s', down.proxy, down.direct)
}

async function rate(mib: number, run: () => Promise<number>): Promise<number> {
  const started = performance.now()
  const status = await run()
  if (status !== 200) throw new Error(`status ${status}`)
  return mib / ((performance.now() - started) / 1000)
}
