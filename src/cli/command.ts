import { type Command, Option as Flag } from 'commander'
import { type Config, flagOf, type Option, type OptionName, options, readConfig, variableOf } from './config/config.js'
import { didYouMean } from './config/option-names.js'
import { defaultText } from './default-text.js'

/** Adds a command with the options of the configuration that it takes. */
export function addCommand(
  program: Command,
  name: string,
  help: string,
  names: readonly OptionName[],
  settings = {},
): Command {
  const command = program
    .command(name, settings)
    .description(help)
    .helpOption('-h, --help', 'print this help')
    // configOf reports unknown options together with all other problems.
    .allowUnknownOption()
    .allowExcessArguments()
    .addOption(
      new Flag('--config <file>', `JSON file of options, named as here in camelCase [${variableOf('config')}]`),
    )
  for (const option of names) command.addOption(flag(option))
  if (names.includes('plugins'))
    command.addOption(new Flag('--no-plugins', 'Run no plugins beside core S3.').helpGroup('Plugins:'))
  return command
}

function flag(name: OptionName): Flag {
  const option: Option = options[name]
  const { placeholder, alone } = option.kind
  const value = alone === undefined ? `<${placeholder}>` : `[${placeholder}]`
  const made = new Flag(`${flagOf(name)} ${value}`, `${option.help} ${facts(name)}`).helpGroup(`${option.group}:`)
  if (alone !== undefined) made.preset(alone)
  if (option.kind.repeatable) made.argParser(collected)
  return made
}

/** Collects the values of a repeatable flag. */
export function collected(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value]
}

/** `[0 to 65535; default 9000; DEALGATE_PORT]` */
function facts(name: OptionName): string {
  const option: Option = options[name]
  const unit = option.unit ? ` ${option.unit}` : ''
  return `[${[option.kind.accepts + unit, defaultText(name) && `default ${defaultText(name)}`, variableOf(name)].filter(Boolean).join('; ')}]`
}

/** `--no-plugins` means `--plugin none`. Commander sets `plugins: false` for it, and `true` if it is absent. */
function withoutPlugins({ plugins, ...flags }: Record<string, unknown>, problems: string[]): Record<string, unknown> {
  if (plugins !== false) return flags
  if (flags.plugin !== undefined) problems.push('--no-plugins and --plugin contradict each other')
  return { ...flags, plugin: ['none'] }
}

/** `--port=1` -> `--port` */
function flagAlone(argument: string): string {
  return argument.split('=')[0] ?? argument
}

function flagsOf(command: Command): string[] {
  return command.options.flatMap(({ long }) => long ?? [])
}

/** The commands beside this one: `dealgate kyes` is `dealgate serve kyes`. */
function commandsOf(command: Command): string[] {
  return command.parent?.commands.map((other) => other.name()) ?? []
}

/**
 * The configuration of a command. Throws a ConfigError that lists all problems.
 * @param operands number of positional arguments of the command
 */
export function configOf(flags: Record<string, unknown>, command: Command, operands = 0): Config {
  const name = command.parent?.parent ? `${command.parent.name()} ${command.name()}` : command.name()
  const unknown = command.args.filter((argument) => argument.startsWith('-'))
  // An argument after an unknown flag may be its value, so it is not reported.
  const excess = unknown.length > 0 ? [] : command.args.slice(operands)
  const problems = [
    ...unknown.map(
      (argument) => `${argument} is no option of dealgate ${name}${didYouMean(flagAlone(argument), flagsOf(command))}`,
    ),
    ...excess.map(
      (argument) =>
        `${argument} is no command, and dealgate ${name} takes no such argument${didYouMean(argument, commandsOf(command))}`,
    ),
  ]
  return readConfig({ flags: withoutPlugins(flags, problems), problems })
}
