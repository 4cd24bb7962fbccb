// home.h - the user's home folder.
#ifndef SONDE_BASE_HOME_H
#define SONDE_BASE_HOME_H

// Returns $HOME, else the home folder in the user database, or NULL if there is none. Valid until
// the next call of getpwuid or setenv.
const char *home_folder(void);

#endif
