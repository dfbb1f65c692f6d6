import { BodyError } from '../services/store/bodies.js'
import { describeError, Failure, print } from './command.js'
import type { Config } from './config/config.js'
import type { Finding } from './doctor/running-server.js'
import { columns } from './keys/key-commands.js'
import { bytesText, ProgressLine } from './progress.js'
import type { Changed } from './running.js'
import { bodiesOf, servicesFolder } from './serve/gateway.js'

type Verification = NonNullable<Awaited<ReturnType<typeof verified>>>

/** `dealgate state verify`: compares all bodies with their checksums, and adds those that are missing. */
export async function verifyState(config: Config): Promise<Changed> {
  const found = await verified(config, true)
  if (found === undefined) throw new Failure(`There are no objects of an embedded gateway in ${config.data}.`)
  const { bodies, bytes, added, renewed, damaged, miscounted } = found
  print(
    config,
    found,
    columns([
      ['BODIES', 'BYTES', 'CHECKSUMS ADDED', 'MARKS RENEWED', 'BUCKETS COUNTED ANEW', 'DAMAGED'],
      [bodies, bytes, added, renewed, miscounted.length, damaged.length].map(String),
    ]),
  )
  if (damaged.length > 0) throw new Failure(listed(damaged))
  return {}
}

/** Verifies for `dealgate doctor --verify`: changes nothing. */
export async function checkVerified(config: Config): Promise<Finding | undefined> {
  if (config.gatewayUrl !== undefined) return undefined
  const found = await verified(config, false)
  if (found === undefined) return undefined
  const { bodies, bytes, uncompared, damaged, miscounted } = found
  if (damaged.length > 0) throw new Failure(listed(damaged))
  const warnings = [
    ...(uncompared === 0
      ? []
      : [`${uncompared} bodies of an earlier version have no checksums: run \`dealgate state verify\` once`]),
    ...miscounted.map(
      ({ name, keptObjects, objects, keptBytes, bytes: there }) =>
        `the bucket ${name} is said to have ${keptObjects} objects and ${keptBytes} bytes, and has ${objects} and ${there}: run \`dealgate state verify\``,
    ),
  ]
  return { text: `${bodies} are as they were stored, ${bytesText(bytes)}`, warnings }
}

async function verified(config: Config, keeps: boolean) {
  const progress = new ProgressLine()
  const { verifyData } = await import('../services/verify.js')
  const options = { data: servicesFolder(config), database: config.database, bodies: bodiesOf(config), keeps }
  try {
    return await verifyData(options, ({ bodies, bytes }) =>
      progress.show(() => `${bodies} bodies, ${bytesText(bytes)}`),
    )
  } catch (error) {
    const isKnown = error instanceof RangeError || error instanceof BodyError
    throw isKnown ? new Failure(describeError(error), { cause: error }) : error
  } finally {
    progress.clear()
  }
}

function listed(damaged: Verification['damaged']): string {
  const lines = damaged.map(({ bucket, key, version, name, reason, deals }) => {
    const object =
      bucket === undefined ? name : `${bucket}/${key}${version === undefined ? '' : ` (version ${version})`}`
    const remedy =
      deals.length === 0
        ? 'No deal has it.'
        : `Repair it from the deal ${deals.join(' or ')}: RetrieveObject with Repair.`
    return `${object}: ${reason} ${remedy}`
  })
  return `${damaged.length} bodies are lost or damaged:\n${lines.join('\n')}`
}
