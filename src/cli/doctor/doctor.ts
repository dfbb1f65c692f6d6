import type { Config } from '../config/config.js'
import { ConfigError } from '../config/config.js'
import { describeError, EXIT_FAILURE } from '../failure.js'
import { ProgressLine } from '../progress.js'
import { checks } from './doctor-checks.js'
import { optionLines, versions, withoutSecrets } from './report.js'

export interface DoctorFlags {
  readonly endpointUrl?: string
  readonly report?: boolean
}

/**
 * `dealgate doctor`: runs every check and prints problems with their remedies. Failures set the exit code, warnings do
 * not. The caller has validated the options. A report has versions and options, too, and no secrets.
 */
export async function doctor(config: Config, { endpointUrl, report = false }: DoctorFlags): Promise<void> {
  if (endpointUrl !== undefined && !isUrl(endpointUrl))
    throw new ConfigError(['--endpoint-url must be an http:// or https:// address'])
  const print = (line: string) => void process.stdout.write(`${report ? withoutSecrets(line, config) : line}\n`)
  if (report) {
    print('```text')
    print(versions())
    for (const line of optionLines(config)) print(line)
  }
  print('ok     options')
  const progress = new ProgressLine()
  for (const { name, elsewhere, run } of checks) {
    if (endpointUrl !== undefined && !elsewhere) continue
    progress.show(() => `checking: ${name}`)
    try {
      const finding = await run(config, endpointUrl).finally(() => progress.clear())
      const { text, warnings = [] } = typeof finding === 'object' ? finding : { text: finding }
      if (text !== undefined) print(`ok     ${name}: ${text}`)
      for (const warning of warnings) print(`warn   ${name}: ${warning}`)
    } catch (error) {
      process.exitCode = EXIT_FAILURE
      print(`WRONG  ${name}: ${describeError(error)}`)
    }
  }
  if (report) print('```')
}

function isUrl(text: string): boolean {
  return /^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : '')
}
