/** The names of the fields of a body that the paths of a table begin with. */
export type TopLevel<Path> = Path extends `${infer Name}.${string}` ? Name : Path
