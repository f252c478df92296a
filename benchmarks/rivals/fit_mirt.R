# Fit R's mirt: Rscript fit_mirt.R FOLDER N_DIMS, with responses.csv in the folder; writes theta.csv and items.csv there.
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
n_dims <- as.integer(arguments[2])
suppressMessages(library(mirt))

responses <- read.csv(file.path(folder, "responses.csv"), header = FALSE)
is_many <- n_dims > 2 # a grid of nodes grows with the power of the dimensions
fitted <- mirt(responses, n_dims, itemtype = "2PL", method = if (is_many) "QMCEM" else "EM", verbose = FALSE)
theta <- fscores(fitted, method = "EAP", QMC = is_many)
items <- coef(fitted, simplify = TRUE, rotate = "none")$items
# Slopes first, then the intercept d.
items <- items[, c(paste0("a", seq_len(n_dims)), "d"), drop = FALSE]

save <- function(values, name) {
  write.table(values, file.path(folder, name), sep = ",", row.names = FALSE, col.names = FALSE)
}
save(theta[, seq_len(n_dims), drop = FALSE], "theta.csv")
save(items, "items.csv")
