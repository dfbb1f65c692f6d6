/**
 * Measures the proxy against the gateway behind it, both over loopback, in interleaved rounds of one run. Read the
 * ratios: absolute figures depend on the machine.
 *
 *   npm run bench:studies [-- --rounds 5] [--size-mib 1024] [--rss-mib 5120]
 *     [--only large|small|authorizer|encryption|verification|rss|deals|transport|workers|leases|curves|memory|engines
 *       |versions]
 *     [--deals-mib 5120] [--quirks legacy] [--axes connections|bytes|keys|deals]
 *     [--node-options '--cpu-prof']
 */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readOptions } from '../options.js'
import { minioOf } from '../servers/minio.js'
import { authorizer } from './authorizer.js'
import { cold } from './cold.js'
import { curves } from './curves.js'
import { deals } from './deals.js'
import { encryption } from './encryption.js'
import { engines } from './engines.js'
import { large } from './large.js'
import { leases } from './leases.js'
import { memory } from './memory.js'
import { rss } from './rss.js'
import { small } from './small.js'
import { startTarget } from './target.js'
import { transport } from './transport.js'
import { verification } from './verification.js'
import { versions } from './versions.js'
import { workers } from './workers.js'

const OPTIONS = {
  rounds: { type: 'string', default: '5' },
  'size-mib': { type: 'string', default: '1024' },
  'rss-mib': { type: 'string', default: '5120' },
  only: { type: 'string', default: 'large,small,rss' },
  'deals-mib': { type: 'string', default: '5120' },
  keys: { type: 'string', default: '1000000' },
  axes: { type: 'string', default: '' },
  out: { type: 'string', default: 'docs/pictures' },
  installed: { type: 'string', default: join(tmpdir(), 'dealgate-bench-peers') },
  minutes: { type: 'string', default: '0' },
  minio: { type: 'string' },
  quirks: { type: 'string', default: 'none' },
  'node-options': { type: 'string', default: '' },
} as const

const values = readOptions(
  'npm run bench:studies',
  OPTIONS,
  ['rounds', 'size-mib', 'rss-mib', 'deals-mib', 'keys', 'minutes'],
  () => parseArgs({ options: OPTIONS }),
)

const MiB = 1024 * 1024
const parts = values.only.split(',')
if (parts.includes('transport')) await transport(Number(values.rounds), Number(values['size-mib']) * MiB)
if (['large', 'small', 'authorizer', 'encryption', 'verification'].some((part) => parts.includes(part))) {
  const target = await startTarget(values.quirks, values['node-options'].split(' ').filter(Boolean))
  try {
    if (parts.includes('large')) await large(target, Number(values.rounds), Number(values['size-mib']) * MiB)
    if (parts.includes('small')) await small(target, Number(values.rounds))
    if (parts.includes('authorizer')) await authorizer(target, Number(values.rounds))
    if (parts.includes('encryption')) await encryption(target, Number(values.rounds), Number(values['size-mib']) * MiB)
    if (parts.includes('verification'))
      await verification(target, Number(values.rounds), Number(values['size-mib']) * MiB)
  } finally {
    await target.stop()
  }
}
if (parts.includes('cold')) await cold(Number(values.rounds))
if (parts.includes('deals')) await deals(Number(values['deals-mib']) * MiB)
if (parts.includes('rss')) await rss(values.quirks, Number(values['rss-mib']) * MiB)
if (parts.includes('curves'))
  await curves({
    quirks: values.quirks,
    minio: minioOf(values.minio),
    out: values.out,
    installed: values.installed,
    maxKeys: Number(values.keys),
    maxBytes: Number(values['size-mib']) * MiB,
    axes: values.axes.split(',').filter(Boolean),
  })
if (parts.includes('memory')) await memory(values.quirks, Number(values.minutes))
if (parts.includes('leases')) await leases()
if (parts.includes('workers')) await workers(values.quirks, Number(values.rounds))
if (parts.includes('engines')) await engines(Number(values.rounds))
if (parts.includes('versions')) await versions(Number(values.rounds))
