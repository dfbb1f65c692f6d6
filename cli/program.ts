import { Command } from 'commander'
import { version } from '../common/files/package-folder.js'
import { createLogger } from '../common/log.js'
import { addCommand, configOf } from './command.js'
import { commands, GROUPS } from './commands.js'
import { addCompletionCommand } from './completion/completion.js'
import type { Config } from './config/config.js'
import { didYouMean } from './config/option.js'
import { requireDataFolder } from './data-folder.js'
import type { CommandDeclaration } from './declaration.js'
import { redactMessage } from './redact-value.js'
import { type Changed, recorded } from './running.js'

/** Defines the command line. Its parser throws CommanderError for errors such as a flag without its value. */
export function createProgram(): Command {
  const program = new Command('dealgate')
    .description('An S3 endpoint over an object gateway that speaks web.* JSON-RPC.')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', '\n`dealgate` alone is `dealgate serve`. Options of a command: dealgate <command> --help')
    .exitOverride()
    .helpCommand(false)
    // Commander quotes unknown options with their values.
    .configureOutput({ outputError: (message, write) => write(redactMessage(message)) })
    // A secret key may begin with -V: only what stands before the command is an option of the program.
    .enablePositionalOptions()
  const groups = new Map<string, Command>()
  for (const declaration of commands) {
    const [group, name] = declaration.name.split(' ') as [string, string?]
    if (name !== undefined && !groups.has(group)) groups.set(group, addGroup(program, group))
    add(groups.get(group) ?? program, name ?? group, declaration)
  }
  addCompletionCommand(program)
  addHelpCommand(program)
  return program
}

function addGroup(program: Command, name: string): Command {
  return program
    .command(name)
    .description(GROUPS[name] ?? '')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', `\nOptions of a command: dealgate ${name} <command> --help`)
}

/** `dealgate help keys add` is `dealgate keys add --help`: the help of Commander looks one word far. */
function addHelpCommand(program: Command): void {
  const help = new Command('help')
    .description('print the help of a command')
    .argument('[command...]', 'its words, such as keys add')
    .action((words: readonly string[]) => {
      let found = program
      for (const word of words) {
        const next = found.commands.find((command) => command.name() === word)
        if (next === undefined) {
          const names = found.commands.map((command) => command.name())
          program.error(`error: there is no command ${words.join(' ')}${didYouMean(word, names)}`)
        }
        found = next
      }
      found.outputHelp()
    })
  program.addCommand(help, { hidden: true })
}

function add(parent: Command, name: string, declaration: CommandDeclaration): void {
  const { help, options, operand, flags = [], after } = declaration
  const command = addCommand(parent, name, help, options, { isDefault: name === 'serve' })
  if (operand) command.argument(...operand)
  for (const [flag, text, value] of flags)
    if (typeof value === 'function') command.option(flag, text, value)
    else command.option(flag, text, value)
  if (after) command.addHelpText('after', `\n${after}`)
  command.action(async (...given: unknown[]) => {
    const operands = operand ? given.slice(0, 1) : []
    const own = command.opts()
    await run(declaration, configOf(own, command, operands.length), [...operands, own])
  })
}

type Action = (config: Config, ...rest: readonly unknown[]) => Promise<unknown>

/** With `--log-level debug`, logs a failure with its causes and stack before it is reduced to one line. */
async function run(declaration: CommandDeclaration, config: Config, rest: readonly unknown[]): Promise<void> {
  const { name, run, changes } = declaration
  try {
    requireDataFolder(config, rest.at(-1) as Readonly<Record<string, unknown>>, declaration)
    const action = (await run()) as Action
    if (changes === undefined) await action(config, ...rest)
    else {
      const recording = recorded(name, action as (...all: Parameters<Action>) => Promise<Changed>, changes)
      await recording(config, ...rest)
    }
  } catch (error) {
    createLogger({ level: config.logLevel, format: config.logFormat }).debug({ err: error }, 'failed')
    throw error
  }
}
