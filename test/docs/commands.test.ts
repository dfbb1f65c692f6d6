import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { findAwsClis, findClient, isolatedEnv } from '../support/programs/run.js'
import { lastingPort } from '../support/server/ports.js'
import { type Exception, exceptions } from './exceptions.js'
import { pages } from './pages.js'
import { asShown, compare } from './printed.js'
import { type Command, commandsOf, inlineCommandsOf } from './read-page.js'
import { type Scene, scenes } from './scenes.js'
import { Shell, writeDealgate } from './shell.js'

// Every command of README.md and the pages of docs, as it is printed there: in order, from an empty folder, against a
// server on free ports.

/** How long the output of a command that comes after a time is waited for, ms. */
const PATIENCE_MS = 120_000

/** `dealgate` without a subcommand, or with `serve`, runs until it is stopped. */
const SERVES = /^(?:\w+=(?:'[^']*'|"[^"]*"|\S*)[\s\\]+)*(?:(?:npx )?dealgate(?=\s*$|\s+serve\b|\s+--)|npm .*start$)/

/** The shell starts it beside what follows, and the page stops it. */
const IN_BACKGROUND = /& echo \$! > \S+\.pid$/

/** curl fails where the answer does, and a busy machine may take longer than 20 seconds for a job. */
const CURLRC = 'fail-with-body\nsilent\nshow-error\nheader = "Prefer: wait=300"\n'

const exceptionOf = (page: string, { text }: Command): Exception | undefined =>
  exceptions.find((exception) => exception.page === page && text.startsWith(exception.command))

/** `DEALGATE_PAGES=guides/ npm test -- test/docs/commands.test.ts` tries these pages alone. */
const chosen = pages.filter((page) => page.includes(process.env.DEALGATE_PAGES ?? ''))

for (const page of chosen) {
  t.test(page, async (t) => {
    const text = await readFile(page, 'utf8')
    t.same(inlineCommandsOf(text), [], 'commands stand in blocks, where they are tried')
    const commands = commandsOf(text)
    const ours = exceptions.filter((exception) => exception.page === page)
    t.same(
      ours.filter((exception) => !commands.some((command) => exceptionOf(page, command) === exception)),
      [],
      'each exception is about a command of the page',
    )
    if (commands.length > 0 && (await haveClients(t, commands))) await tryPage(t, page, commands)
  })
}

t.test('npx runs dealgate only where it is installed: elsewhere npm asks the registry', async (t) => {
  const texts = await Promise.all(pages.map(async (page) => ({ page, text: await readFile(page, 'utf8') })))
  const used = texts.filter(({ text }) => /^\W*.*\bnpx dealgate (?!`)/m.test(text.replace(/`npx [^`]*`/g, '')))
  t.same(
    used.map(({ page }) => page),
    [USES_NPX],
  )
})

t.same(
  exceptions.filter(({ page }) => !pages.includes(page)),
  [],
  'each exception is about a page',
)

async function tryPage(t: Test, page: string, commands: readonly Command[]): Promise<void> {
  const folder = temporaryFolder(t)
  const scene: Scene = (await scenes[page]?.(t, folder)) ?? {}
  if (scene.skip !== undefined) return void t.pass(page, { skip: scene.skip })
  const [port, gatewayPort] = [await lastingPort(), await lastingPort()]
  const [platformPort, paymentPort, consolePort] = [await lastingPort(), await lastingPort(), await lastingPort()]
  const rewrites = new Map([
    ['127.0.0.1:9000', `127.0.0.1:${port}`],
    ['127.0.0.1:9001', `127.0.0.1:${consolePort}`],
    ['127.0.0.1:9100', `127.0.0.1:${gatewayPort}`],
    ['127.0.0.1:9200', `127.0.0.1:${platformPort}`],
    ['127.0.0.1:9300', `127.0.0.1:${paymentPort}`],
    ...Object.entries(scene.rewrite ?? {}),
  ])
  const environment = {
    ...(await readersEnvironment(t, folder, page)),
    DEALGATE_PORT: String(port),
    DEALGATE_CONSOLE_PORT: String(consolePort),
    DEALGATE_GATEWAY_PORT: String(gatewayPort),
    DEALGATE_PLATFORM_PORT: String(platformPort),
    DEALGATE_PAYMENT_PORT: String(paymentPort),
    ...scene.env,
  }
  const shell = new Shell(folder, environment)
  t.teardown(() => shell.stop())
  if (!scene.unserved) await shell.serve('dealgate')
  await scene.begun?.()
  for (const command of commands) {
    const exception = exceptionOf(page, command)
    const text = exception ? exception.instead : command.text
    if (text === undefined) continue
    const name = `${page}:${command.line}: ${command.text}`
    const rewritten = rewrite(text, rewrites)
    if (SERVES.test(rewritten.replace(/\s+#.*/, '')) && !IN_BACKGROUND.test(rewritten)) {
      await shell.serve(rewritten)
      t.pass(name)
    } else if (!(await tryCommand(t, name, { ...command, text: rewritten }, shell, rewrites))) return
  }
}

/** False after a failure: what follows on the page builds on it. */
async function tryCommand(
  t: Test,
  name: string,
  command: Command,
  shell: Shell,
  rewrites: Map<string, string>,
): Promise<boolean> {
  const deadline = Date.now() + PATIENCE_MS
  const shown = rewrite(command.printed, rewrites).trim()
  for (;;) {
    const { code, stdout, stderr } = await shell.run(command.text)
    const output = asShown(stdout)
    const ids = shown === '' ? new Map<string, string>() : compare(shown, output)
    const passed = code === 0 && ids !== undefined
    if (!passed && command.awaited && Date.now() < deadline) {
      await sleep(500)
      continue
    }
    t.equal(code, 0, name, { diagnostic: code !== 0, stdout, stderr })
    if (code === 0 && shown !== '')
      t.ok(ids, `${name}: prints what the page shows`, { shown, output, diagnostic: !ids })
    // An id of the page stands for the one that was printed here.
    for (const [id, found] of ids ?? []) rewrites.set(id, found)
    return passed
  }
}

function rewrite(text: string, rewrites: ReadonlyMap<string, string>): string {
  return [...rewrites].reduce((rewritten, [from, to]) => rewritten.replaceAll(from, to), text)
}

/** The page whose first command with npx runs it. `NPX` stands in elsewhere: npm takes longer than what it runs. */
const USES_NPX = 'docs/guides/write-a-plugin.md'

/** Runs what npx would run. npm looks for a program that is not installed in the working folder. */
const NPX = `#!/bin/sh
program=node_modules/.bin/$1
[ -x "$program" ] && rm "$0.first" 2>/dev/null && exec npm exec -- "$@"
[ -x "$program" ] || exec npm exec -- "$@"
shift
exec "$program" "$@"
`

/** A home of its own, and `dealgate` on PATH as `npm install --global` puts it there. */
async function readersEnvironment(t: Test, folder: string, page: string): Promise<Record<string, string>> {
  const home = temporaryFolder(t)
  const programs = join(home, 'bin')
  await mkdir(programs)
  await writeDealgate(join(programs, 'dealgate'))
  await symlink(process.execPath, join(programs, 'node'))
  await writeFile(join(programs, 'npx'), NPX, { mode: 0o755 })
  if (page === USES_NPX) await writeFile(join(programs, 'npx.first'), '')
  const aws = (process.env.DEALGATE_AWS_CLIS ?? '').split(/[:\s]+/).at(-1)
  if (aws) await symlink(aws, join(programs, 'aws'))
  await writeFile(join(home, '.curlrc'), CURLRC)
  const { PATH, ...rest } = isolatedEnv({ AWS_EC2_METADATA_DISABLED: 'true', AWS_PAGER: '' })
  return { ...rest, PATH: `${programs}:${PATH}`, HOME: home, REPOSITORY: resolve('.'), PWD: folder }
}

async function haveClients(t: Test, commands: readonly Command[]): Promise<boolean> {
  const texts = commands.map(({ text }) => text).join('\n')
  const uses = (program: string) => new RegExp(`(^|[;&|]\\s*)${program} `, 'm').test(texts)
  if (uses('aws') && (await findAwsClis(t)).length === 0) return false
  for (const program of ['curl', 'rclone', 's3cmd', 'restic']) {
    if (uses(program) && !(await findClient(t, program))) return false
  }
  return true
}
