// What is said in every case: the user's question, the model's words, the line in the file. All of it is ours.

/** What the model says at last; every client shows it to its user. */
export const SAID = "The weir is open.";
export const THOUGHT = "Let me look first.";

/** What the agents write, and where. */
export const FILE = "notes.txt";
export const LINE = "The weir holds.";
export const PATCH = `*** Begin Patch\n*** Add File: ${FILE}\n+${LINE}\n*** End Patch`;

/** What the libraries ask (drivers/ hold the same words), and what their tool answers. */
export const QUESTION = "What is the weather in Ghent?";
export const WEATHER = "rain";
