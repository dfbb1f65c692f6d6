#!/usr/bin/env node
import { CommanderError } from 'commander'
import { describeError, EXIT_BAD_OPTIONS, exitCodeOf } from './cli/command.js'
import type { Config } from './cli/config/config.js'
import { createProgram } from './cli/program.js'
import { printEnvironment, recorded } from './cli/running.js'
import type { ApiKeyFlags, QuotaFlags } from './cli/subcommands.js'
import { createLogger } from './common/log.js'

// Each command loads its modules when it runs, so that `--help`, a bad option or `presign` do not load the server.
const program = createProgram({
  serve: traced(async () => (await import('./cli/serve/serve.js')).serveUntilSignal),
  services: traced(async () => (await import('./cli/serve/services.js')).servicesUntilSignal),
  doctor: traced(async () => (await import('./cli/doctor/doctor.js')).doctor),
  backup: traced(async () => (await import('./cli/backup/backup.js')).backup),
  restore: traced(async () => (await import('./cli/backup/restore.js')).restore),
  presign: traced(async () => (await import('./cli/presign.js')).presign),
  showDeals: traced(async () => (await import('./cli/watch/deals.js')).showDeals),
  showJobs: traced(async () => (await import('./cli/watch/jobs.js')).showJobs),
  login: traced(async () => (await import('./cli/login.js')).login),
  addKey: traced(async () => recorded('keys add', (await import('./cli/keys/key-commands.js')).addKey)),
  listKeys: traced(async () => (await import('./cli/keys/key-commands.js')).listKeys),
  printEnvironment: traced(async () => printEnvironment),
  removeKey: traced(async () => recorded('keys remove', (await import('./cli/keys/key-commands.js')).removeKey)),
  listPlugins: traced(async () => (await import('./cli/plugins/plugins.js')).listPlugins),
  newPlugin: traced(async () => (await import('./cli/plugins/plugin-new.js')).newPlugin),
  checkPlugin: traced(async () => (await import('./cli/plugins/plugins.js')).checkPluginAt),
  addAccount: traced(async () =>
    recorded('account add', (await import('./cli/account/account-commands.js')).addAccount),
  ),
  listAccounts: traced(async () => (await import('./cli/account/account-commands.js')).listAccounts),
  removeAccount: traced(async () =>
    recorded('account remove', (await import('./cli/account/account-commands.js')).removeAccount),
  ),
  rotateAccount: traced(async () =>
    recorded('account rotate', (await import('./cli/account/account-commands.js')).rotateAccount),
  ),
  accountQuota: traced(async () =>
    recorded('account quota', (await import('./cli/account/account-commands.js')).accountQuota, setsQuota),
  ),
  changePassword: traced(async () =>
    recorded('account password', (await import('./cli/account/user-commands.js')).changePassword),
  ),
  userApiKeys: traced(async () =>
    recorded('account api-keys', (await import('./cli/account/user-commands.js')).userApiKeys, revokes),
  ),
  createWallet: traced(async () =>
    recorded('wallet create', (await import('./cli/wallet/wallet-commands.js')).createWallet),
  ),
  fundWallet: traced(async () => recorded('wallet fund', (await import('./cli/wallet/wallet-commands.js')).fundWallet)),
  walletBalance: traced(async () => (await import('./cli/wallet/wallet-commands.js')).walletBalance),
  linkWallet: traced(async () =>
    recorded('wallet link', (await import('./cli/wallet/wallet-commands.js')).linkToEndpoint),
  ),
  payUpload: traced(async () => recorded('wallet pay', (await import('./cli/wallet/wallet-commands.js')).payUpload)),
  acceptState: traced(async () => recorded('state accept', (await import('./cli/state-commands.js')).acceptState)),
})

// `dealgate --help | head` closes the pipe early, which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

program.parseAsync().catch((error) => {
  process.exitCode = report(error)
})

type Action<Rest extends unknown[]> = (config: Config, ...rest: Rest) => Promise<void>

function setsQuota(_: string, { bytes, objects, uploads }: QuotaFlags): boolean {
  return [bytes, objects, uploads].some((bound) => bound !== undefined)
}

function revokes(_: string, { revoke }: ApiKeyFlags): boolean {
  return revoke !== undefined
}

/** With `--log-level debug`, logs a failure with its causes and stack before it is reduced to one line. */
function traced<Rest extends unknown[]>(load: () => Promise<Action<Rest>>): Action<Rest> {
  return async (config, ...rest) => {
    try {
      const action = await load()
      await action(config, ...rest)
    } catch (error) {
      createLogger({ level: config.logLevel, format: config.logFormat }).debug({ err: error }, 'failed')
      throw error
    }
  }
}

/** Prints the failure in one line. Returns the exit code: 1 for a failure, 2 for bad options. */
function report(error: unknown): number {
  // Commander has already printed its message, the help or the version.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_BAD_OPTIONS
  process.stderr.write(`dealgate: ${describeError(error)}\n`)
  return exitCodeOf(error)
}
